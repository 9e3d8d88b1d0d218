"""The MCP server on stdio: tools, resources and prompts for the hosts of models, made from the table of operations."""
