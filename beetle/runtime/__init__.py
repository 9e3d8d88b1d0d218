"""What happens for one operation: the pipeline, the areas, the planes, and the process around them."""
