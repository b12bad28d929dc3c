//! The tables of the built-in rules, which the build script computed.

use super::lexicon::{Anchor, Element, Lexicon, Shape};
use std::borrow::Cow;

include!(concat!(env!("OUT_DIR"), "/tables.rs"));
