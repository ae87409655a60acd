"""What the parser of the command line says and writes: complaints, and scripts that complete."""
