"""MCP servers: signing in to them, and the tokens that come of it."""
