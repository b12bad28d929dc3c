//! The budget of a run: tokens and dollars, exact under parallel requests.
//!
//! A request is admitted with a reservation for the most that it can cost: its input, estimated, and its `max_tokens`,
//! which is lowered to what is left. So the sum of what was spent and what is reserved never passes the limit, and what
//! a run can overspend is the error of the input's estimate of the last response. Near the end, requests wait for the
//! reservations of others to come back; when nothing is in flight and the least useful answer does not fit, the budget
//! is used up, for good.

use super::price::Price;
use super::scope::{Locked, Scope};
use serde::Serialize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// The shortest answer worth asking for, in tokens. A request whose `max_tokens` is lower asks for less.
const LEAST_OUTPUT: u64 = 256;

/// What a run may spend. `None`: no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Budget {
    /// US dollars, by the price table.
    pub usd: Option<f64>,
    /// Tokens, input and output and cache together.
    pub tokens: Option<u64>,
}

/// What the model cost so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Usage {
    /// Answers that were paid for.
    pub responses: u64,
    /// Input tokens that were neither read from nor written to the cache.
    pub input_tokens: u64,
    /// Output tokens.
    pub output_tokens: u64,
    /// Tokens read from the cache.
    pub cache_read_tokens: u64,
    /// Tokens written to the cache.
    pub cache_write_tokens: u64,
    /// US dollars, by the price table.
    pub usd: f64,
}

/// The usage of one answer, as the API reports it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Spent {
    pub input: u64,
    pub output: u64,
    pub cache_read: u64,
    pub cache_write_5m: u64,
    pub cache_write_1h: u64,
}

impl Spent {
    fn tokens(&self) -> u64 {
        [self.input, self.output, self.cache_read, self.cache_write_5m, self.cache_write_1h]
            .into_iter()
            .fold(0, u64::saturating_add)
    }

    fn nano(&self, price: &Price) -> u64 {
        [
            (self.input, price.input),
            (self.output, price.output),
            (self.cache_read, price.cache_read),
            (self.cache_write_5m, price.cache_write_5m),
            (self.cache_write_1h, price.cache_write_1h),
        ]
        .into_iter()
        .fold(0, |sum, (tokens, each)| sum.saturating_add(tokens.saturating_mul(each)))
    }
}

/// What a request will cost at most.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ask {
    pub price: Price,
    /// Estimated input tokens.
    pub input: u64,
    /// The `max_tokens` that was asked for.
    pub output: u64,
    /// Less output than this makes the request invalid (a thinking budget).
    pub least: u64,
}

/// A place in the budget. It must be settled; dropped unsettled, it is charged in full.
pub(super) struct Grant {
    account: Arc<Account>,
    price: Price,
    nano: u64,
    tokens: u64,
    /// What `max_tokens` may be.
    pub output: u64,
    estimate: u64,
    settled: bool,
}

/// The account of one run, and its part in those that it shares.
pub(super) struct Account {
    limit_nano: u64,
    limit_tokens: u64,
    scopes: Vec<Scope>,
    state: Mutex<State>,
    returned: Notify,
}

#[derive(Default)]
struct State {
    spent_nano: u64,
    spent_tokens: u64,
    reserved_nano: u64,
    reserved_tokens: u64,
    in_flight: u64,
    exhausted: bool,
    /// Which budget was too small first: its name, and the flag that sets it.
    by: Option<(String, &'static str)>,
    /// The part of the shared budgets that is used, as last seen.
    shared_used: f64,
    usage: Usage,
}

/// The budget is used up.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Exhausted;

impl Budget {
    /// Nanodollars and tokens; what is not limited is the largest number.
    fn limits(self) -> (u64, u64) {
        let nano = |usd: f64| if usd.is_finite() { (usd.max(0.0) * 1e9) as u64 } else { 0 };
        (self.usd.map_or(u64::MAX, nano), self.tokens.unwrap_or(u64::MAX))
    }
}

impl Account {
    pub(super) fn new(budget: Budget, scopes: Vec<Scope>) -> Arc<Account> {
        let (limit_nano, limit_tokens) = budget.limits();
        Arc::new(Account {
            limit_nano,
            limit_tokens,
            scopes,
            state: Mutex::default(),
            returned: Notify::new(),
        })
    }

    /// Which budget is used up, and the flag that sets it.
    pub(super) fn exhausted_by(&self) -> (String, &'static str) {
        let flag = if self.limit_nano == u64::MAX { "--budget-tokens" } else { "--budget-usd" };
        self.lock().by.clone().unwrap_or_else(|| ("run".to_owned(), flag))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a place, if others hold what is left.
    pub(super) async fn admit(self: &Arc<Self>, ask: Ask) -> Result<Grant, Exhausted> {
        loop {
            let returned = self.returned.notified();
            tokio::pin!(returned);
            returned.as_mut().enable();
            {
                let mut state = self.lock();
                if let Some(grant) = self.place(&mut state, ask) {
                    return Ok(grant);
                }
                if state.in_flight == 0 {
                    state.exhausted = true;
                }
                if state.exhausted {
                    return Err(Exhausted);
                }
            }
            returned.await;
        }
    }

    /// The shared accounts, locked in the order of their making.
    fn lock_scopes(&self, state: &mut State) -> Option<Vec<Locked>> {
        let mut locked = Vec::with_capacity(self.scopes.len());
        for scope in &self.scopes {
            match scope.lock() {
                Ok(open) => locked.push(open),
                Err(error) => {
                    // What was spent is not known: nothing may be spent.
                    state.exhausted = true;
                    state.by = Some((format!("{} (unreadable: {error})", scope.name), scope.flag));
                    return None;
                }
            }
        }
        Some(locked)
    }

    fn place(self: &Arc<Self>, state: &mut State, ask: Ask) -> Option<Grant> {
        if state.exhausted {
            return None;
        }
        let mut open = self.lock_scopes(state)?;
        let mut left_nano =
            self.limit_nano.saturating_sub(state.spent_nano).saturating_sub(state.reserved_nano);
        let mut left_tokens =
            self.limit_tokens.saturating_sub(state.spent_tokens).saturating_sub(state.reserved_tokens);
        let mut tightest = None;
        for (scope, locked) in self.scopes.iter().zip(&open) {
            let (limit_nano, limit_tokens) = scope.budget.limits();
            let (nano, tokens) = locked.totals.left(limit_nano, limit_tokens);
            if nano < left_nano || tokens < left_tokens {
                tightest = Some(scope);
            }
            (left_nano, left_tokens) = (left_nano.min(nano), left_tokens.min(tokens));
        }
        let input_nano = ask.input.saturating_mul(ask.price.input);
        let affordable = left_nano.checked_sub(input_nano).and_then(|left| {
            let by_money = left.checked_div(ask.price.output).unwrap_or(u64::MAX);
            Some(by_money.min(left_tokens.checked_sub(ask.input)?))
        });
        let least = ask.output.min(LEAST_OUTPUT.max(ask.least)).max(1);
        let Some(affordable) = affordable.filter(|n| *n >= least) else {
            state.by = tightest.map(|scope| (scope.name.clone(), scope.flag));
            return None;
        };
        let output = ask.output.min(affordable);
        let nano = input_nano.saturating_add(output.saturating_mul(ask.price.output));
        let tokens = ask.input.saturating_add(output);
        for locked in &mut open {
            let totals = &mut locked.totals;
            totals.reserved_nano = totals.reserved_nano.saturating_add(nano);
            totals.reserved_tokens = totals.reserved_tokens.saturating_add(tokens);
            locked.save().ok()?;
        }
        state.reserved_nano = state.reserved_nano.saturating_add(nano);
        state.reserved_tokens = state.reserved_tokens.saturating_add(tokens);
        state.in_flight += 1;
        Some(Grant {
            account: Arc::clone(self),
            price: ask.price,
            nano,
            tokens,
            output,
            estimate: ask.input,
            settled: false,
        })
    }

    /// Takes a reservation back from the shared accounts, and charges what it cost.
    fn settle_scopes(&self, state: &mut State, grant: &Grant, nano: u64, tokens: u64) {
        let Some(mut open) = self.lock_scopes(state) else { return };
        state.shared_used = 0.0;
        for (scope, locked) in self.scopes.iter().zip(&mut open) {
            let totals = &mut locked.totals;
            totals.reserved_nano = totals.reserved_nano.saturating_sub(grant.nano);
            totals.reserved_tokens = totals.reserved_tokens.saturating_sub(grant.tokens);
            totals.spent_nano = totals.spent_nano.saturating_add(nano);
            totals.spent_tokens = totals.spent_tokens.saturating_add(tokens);
            let (limit_nano, limit_tokens) = scope.budget.limits();
            let used = part(totals.spent_nano, limit_nano).max(part(totals.spent_tokens, limit_tokens));
            state.shared_used = state.shared_used.max(used);
            if used >= 1.0 || locked.save().is_err() {
                state.exhausted = true;
                state.by = Some((scope.name.clone(), scope.flag));
            }
        }
    }

    pub(super) fn usage(&self) -> (Usage, bool) {
        let state = self.lock();
        (state.usage, state.exhausted)
    }

    /// The part of the budget that is used, 0 to 1, the larger of dollars and tokens.
    pub(super) fn used(&self) -> f64 {
        let state = self.lock();
        let own = part(state.spent_nano, self.limit_nano).max(part(state.spent_tokens, self.limit_tokens));
        own.max(state.shared_used)
    }
}

fn part(used: u64, limit: u64) -> f64 {
    if limit == u64::MAX { 0.0 } else { used as f64 / limit.max(1) as f64 }
}

impl Grant {
    /// The answer has ended and cost `spent`.
    pub(super) fn settle(mut self, spent: Spent) {
        self.close(spent);
    }

    /// Nothing was answered that costs anything.
    pub(super) fn release(mut self) {
        self.settled = true;
        let account = Arc::clone(&self.account);
        let mut state = account.lock();
        account.settle_scopes(&mut state, &self, 0, 0);
        self.give_back(&mut state);
    }

    fn give_back(&self, state: &mut State) {
        state.reserved_nano = state.reserved_nano.saturating_sub(self.nano);
        state.reserved_tokens = state.reserved_tokens.saturating_sub(self.tokens);
        state.in_flight = state.in_flight.saturating_sub(1);
        self.account.returned.notify_waiters();
    }

    fn close(&mut self, spent: Spent) {
        self.settled = true;
        let account = Arc::clone(&self.account);
        let mut state = account.lock();
        let nano = spent.nano(&self.price);
        state.spent_nano = state.spent_nano.saturating_add(nano);
        state.spent_tokens = state.spent_tokens.saturating_add(spent.tokens());
        state.usage.responses += 1;
        state.usage.input_tokens += spent.input;
        state.usage.output_tokens += spent.output;
        state.usage.cache_read_tokens += spent.cache_read;
        state.usage.cache_write_tokens += spent.cache_write_5m + spent.cache_write_1h;
        state.usage.usd = state.spent_nano as f64 / 1e9;
        let over_money = self.account.limit_nano != u64::MAX && state.spent_nano >= self.account.limit_nano;
        let over_tokens =
            self.account.limit_tokens != u64::MAX && state.spent_tokens >= self.account.limit_tokens;
        state.exhausted |= over_money || over_tokens;
        account.settle_scopes(&mut state, self, nano, spent.tokens());
        self.give_back(&mut state);
    }
}

impl Drop for Grant {
    fn drop(&mut self) {
        if !self.settled {
            self.close(Spent { input: self.estimate, output: self.output, ..Spent::default() });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PRICE: Price =
        Price { input: 1_000, output: 5_000, cache_read: 100, cache_write_5m: 1_250, cache_write_1h: 2_000 };

    fn ask(input: u64, output: u64) -> Ask {
        Ask { price: PRICE, input, output, least: 0 }
    }

    #[tokio::test]
    async fn max_tokens_is_lowered_to_what_is_left() {
        let account = Account::new(Budget { usd: Some(0.01), tokens: None }, vec![]);
        let grant = account.admit(ask(1_000, 32_000)).await.unwrap();
        assert_eq!(grant.output, 1_800);
        grant.settle(Spent { input: 1_000, output: 1_000, ..Spent::default() });
        let grant = account.admit(ask(1_000, 32_000)).await.unwrap();
        assert_eq!(grant.output, 600);
    }

    #[tokio::test]
    async fn a_budget_that_is_used_up_stays_used_up() {
        let account = Account::new(Budget { usd: None, tokens: Some(1_000) }, vec![]);
        account.admit(ask(100, 900)).await.unwrap().settle(Spent {
            input: 100,
            output: 899,
            ..Spent::default()
        });
        assert_eq!(account.admit(ask(100, 900)).await.err(), Some(Exhausted));
        assert_eq!(account.admit(ask(0, 1)).await.err(), Some(Exhausted));
    }

    #[tokio::test]
    async fn a_grant_that_is_lost_is_charged_in_full() {
        let account = Account::new(Budget { usd: None, tokens: Some(1_000) }, vec![]);
        drop(account.admit(ask(100, 500)).await.unwrap());
        assert_eq!(account.usage().0.output_tokens, 500);
    }

    #[tokio::test]
    async fn runs_that_share_a_budget_stay_within_it_together() {
        let dir = tempfile::tempdir().unwrap();
        let day = || {
            let budget = Budget { usd: None, tokens: Some(1_000) };
            vec![Scope::new(dir.path(), "day 2026-11-30", "--day-budget-tokens", budget).unwrap()]
        };
        let (a, b) = (Account::new(Budget::default(), day()), Account::new(Budget::default(), day()));
        let open = a.admit(ask(100, 600)).await.unwrap();
        let second = b.admit(ask(0, 600)).await.unwrap();
        assert_eq!(second.output, 300, "the reservation of the other run counts");
        open.settle(Spent { input: 100, output: 100, ..Spent::default() });
        second.settle(Spent { output: 300, ..Spent::default() });
        // A third run, later: 500 are spent.
        let c = Account::new(Budget::default(), day());
        let third = c.admit(ask(0, 600)).await.unwrap();
        assert_eq!(third.output, 500);
        third.settle(Spent { output: 500, ..Spent::default() });
        assert_eq!(b.admit(ask(0, 600)).await.err(), Some(Exhausted));
        assert_eq!(b.exhausted_by(), ("day 2026-11-30".to_owned(), "--day-budget-tokens"));
    }

    #[tokio::test]
    async fn a_shared_budget_that_cannot_be_read_is_used_up() {
        let dir = tempfile::tempdir().unwrap();
        let scope = Scope::new(dir.path(), "day x", "--day-budget-usd", Budget::default()).unwrap();
        std::fs::write(&scope.file, "garbage").unwrap();
        let account = Account::new(Budget::default(), vec![scope]);
        assert_eq!(account.admit(ask(0, 600)).await.err(), Some(Exhausted));
    }

    proptest! {
        /// Whatever the order of asking and settling, spent plus reserved stays within the limit.
        #[test]
        fn reservations_never_pass_the_limit(
            limit in 1u64..200_000,
            steps in proptest::collection::vec((0u64..2_000, 1u64..40_000, any::<bool>(), 0u64..100), 1..60),
        ) {
            let account = Account::new(Budget { usd: None, tokens: Some(limit) }, vec![]);
            let mut open = Vec::new();
            for (input, output, settle, percent) in steps {
                if let Some(grant) = account.place(&mut account.lock(), ask(input, output)) {
                    open.push((grant, input));
                }
                if settle && !open.is_empty() {
                    let (grant, input) = open.remove(0);
                    let output = grant.output * percent / 100;
                    grant.settle(Spent { input, output, ..Spent::default() });
                }
                let state = account.lock();
                prop_assert!(state.spent_tokens + state.reserved_tokens <= limit);
            }
        }
    }
}
