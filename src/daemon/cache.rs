//! Configuration, read again when a file changes.

use crate::config::{self, Config, Places};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// Most projects kept at once; beyond that all are forgotten.
const PROJECTS: usize = 64;

type Stamp = Vec<Option<(u64, i64, i64, u64)>>;

/// Configurations by where their files lie.
#[derive(Debug, Default)]
pub struct Cache {
    known: Mutex<HashMap<Places, (Stamp, Arc<Config>)>>,
}

impl Cache {
    /// The configuration of `places`, as the files are now.
    pub fn get(&self, places: &Places) -> Arc<Config> {
        let stamp = places.stamp();
        if let Ok(known) = self.known.lock()
            && let Some((at, config)) = known.get(places)
            && *at == stamp
        {
            return Arc::clone(config);
        }
        // Read after the stamp was taken: a change in between is seen by the next call.
        let config = Arc::new(config::load(places));
        if let Ok(mut known) = self.known.lock() {
            if known.len() >= PROJECTS {
                known.clear();
            }
            known.insert(places.clone(), (stamp, Arc::clone(&config)));
        }
        config
    }
}
