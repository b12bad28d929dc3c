//! What may leave: secrets, auto-fetching markup, patches, schema, provenance.
