"""What a decision says is to be done: Plan, Action and Note, frozen values that import nothing of ours."""
