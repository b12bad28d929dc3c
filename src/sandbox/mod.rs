//! Spec → Plan → spawn: the kernel bounds what a process can do. Knows nothing of agents.
