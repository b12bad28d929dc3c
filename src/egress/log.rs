//! Collects what happens at the door, bounded and with what repeats counted, and raises alerts while the run goes on.

use super::event::{Alert, Door, Event, MAX_ALERTS, MAX_EVENTS, Reason, Report, SCAN_HOSTS, Verdict};
use std::collections::{BTreeMap, HashSet};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

type Key = (Door, String, u16, Verdict, Reason, Option<IpAddr>);

/// Called for each alert, on the server's thread. It must not block.
pub type OnAlert = Arc<dyn Fn(&Alert) + Send + Sync>;

/// Is told of each refused place once, at most [`MAX_ALERTS`] of them: one line that says what would allow it.
pub type OnRefusal = Arc<dyn Fn(&str) + Send + Sync>;

/// Collects events; cheap to share.
pub(super) struct Log {
    inner: Mutex<Inner>,
    on_alert: Option<OnAlert>,
    on_refusal: Option<OnRefusal>,
}

#[derive(Default)]
struct Inner {
    index: BTreeMap<Key, usize>,
    events: Vec<Event>,
    dropped: u64,
    alerts: Vec<Alert>,
    alerts_dropped: u64,
    refused: Vec<String>,
    blocked: HashSet<IpAddr>,
    scan_raised: bool,
    told: HashSet<(String, u16)>,
    once: HashSet<std::mem::Discriminant<Alert>>,
}

impl Log {
    pub(super) fn new(on_alert: Option<OnAlert>, on_refusal: Option<OnRefusal>) -> Log {
        Log { inner: Mutex::default(), on_alert, on_refusal }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn record(&self, event: Event) {
        let (line, alert) = {
            let mut inner = self.lock();
            let line = event.explained().filter(|_| inner.is_new_refusal(&event));
            let alert = inner.alert_for(&event);
            inner.add(event);
            (line, alert)
        };
        if let (Some(line), Some(on_refusal)) = (line, &self.on_refusal) {
            on_refusal(&line);
        }
        if let Some(alert) = alert {
            self.alert(alert);
        }
    }

    pub(super) fn alert(&self, alert: Alert) {
        {
            let mut inner = self.lock();
            if inner.alerts.len() >= MAX_ALERTS {
                inner.alerts_dropped += 1;
                return;
            }
            inner.alerts.push(alert.clone());
        }
        if let Some(on_alert) = &self.on_alert {
            on_alert(&alert);
        }
    }

    /// Raises an alert of a kind that is raised once a run.
    pub(super) fn alert_once(&self, alert: Alert) {
        let known = std::mem::discriminant(&alert);
        if !self.lock().once.insert(known) {
            return;
        }
        self.alert(alert);
    }

    pub(super) fn report(&self) -> Report {
        let inner = self.lock();
        Report {
            events: inner.events.clone(),
            events_dropped: inner.dropped,
            alerts: inner.alerts.clone(),
            alerts_dropped: inner.alerts_dropped,
            ..Report::default()
        }
    }
}

impl Inner {
    fn add(&mut self, event: Event) {
        let key = (event.door, event.host.clone(), event.port, event.verdict, event.reason, event.address);
        let room = self.events.len() < MAX_EVENTS;
        match self.index.get(&key).and_then(|i| self.events.get_mut(*i)) {
            Some(known) => {
                known.count += event.count;
                known.bytes_up += event.bytes_up;
                known.bytes_down += event.bytes_down;
                known.duration_ms += event.duration_ms;
                known.ech |= event.ech;
            }
            None if room => {
                self.index.insert(key, self.events.len());
                self.events.push(event);
            }
            None => self.dropped += 1,
        }
    }

    fn alert_for(&mut self, event: &Event) -> Option<Alert> {
        match (event.reason, event.address) {
            (Reason::AddressBlocked, Some(address)) if self.blocked.len() < MAX_EVENTS => self
                .blocked
                .insert(address)
                .then(|| Alert::BlockedAddress { host: event.host.clone(), address }),
            (Reason::HostNotAllowed, _) => self.scan(event),
            _ => None,
        }
    }

    /// The first attempt at a host and port that is refused. Told at most [`MAX_ALERTS`] times.
    fn is_new_refusal(&mut self, event: &Event) -> bool {
        let place = (event.host.clone(), event.port);
        self.told.len() < MAX_ALERTS && self.told.insert(place)
    }

    fn scan(&mut self, event: &Event) -> Option<Alert> {
        if self.scan_raised || self.refused.contains(&event.host) {
            return None;
        }
        self.refused.push(event.host.clone());
        self.scan_raised = self.refused.len() >= SCAN_HOSTS;
        self.scan_raised.then(|| Alert::Scan { hosts: self.refused.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn denied(host: &str) -> Event {
        Event::new(Door::Connect, host, 443).ended(Verdict::Denied, Reason::HostNotAllowed)
    }

    #[test]
    fn a_flood_of_one_attempt_is_one_event_with_a_count() {
        let log = Log::new(None, None);
        for _ in 0..10_000 {
            log.record(denied("a.test"));
        }
        let report = log.report();
        assert_eq!((report.events.len(), report.events[0].count, report.events_dropped), (1, 10_000, 0));
    }

    #[test]
    fn distinct_attempts_are_bounded_and_the_rest_is_counted() {
        let log = Log::new(None, None);
        for n in 0..MAX_EVENTS + 7 {
            log.record(denied(&format!("h{n}.test")));
        }
        let report = log.report();
        assert_eq!((report.events.len(), report.events_dropped), (MAX_EVENTS, 7));
    }

    #[test]
    fn a_scan_of_many_hosts_raises_one_alert() {
        let raised = Arc::new(Mutex::new(0));
        let counter = Arc::clone(&raised);
        let log = Log::new(Some(Arc::new(move |_: &Alert| *counter.lock().unwrap() += 1)), None);
        for n in 0..SCAN_HOSTS - 1 {
            log.record(denied(&format!("h{n}.test")));
            log.record(denied(&format!("h{n}.test")));
        }
        assert_eq!(*raised.lock().unwrap(), 0);
        for n in 0..20 {
            log.record(denied(&format!("x{n}.test")));
        }
        assert_eq!(*raised.lock().unwrap(), 1);
    }
}
