"""What a release has beside the wheel and the image: licences and a bill of materials. Not part of the wheel."""
