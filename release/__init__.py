"""What a release has beside the wheel and the image: licences, provenance, links that work. Not part of the wheel."""
