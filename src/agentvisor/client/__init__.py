"""The SDK's side of the contract: what changed is sent, and a call returns once it is durable."""
