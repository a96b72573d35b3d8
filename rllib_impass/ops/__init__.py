"""Pure maths on arrays and tensors; nothing here imports Ray."""
