"""What tests/gpu/accept is made of: one module a part, and what they share."""
