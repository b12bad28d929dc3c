//! What a repository may not bring along: agent configuration that runs code, widens permissions or redirects the model.
