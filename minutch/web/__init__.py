"""What the servers of minutch share: who may come in, where they listen, how uvicorn is set up."""
