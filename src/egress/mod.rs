//! The only way out: bridge, proxy, address screen, model gateway.
