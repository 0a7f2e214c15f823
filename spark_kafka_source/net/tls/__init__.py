"""TLS: certificates and keys from options, contexts, and failures in words."""
