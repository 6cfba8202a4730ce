//! Fair queues for the scarce resources of the server, such as worker threads or bytes of unsent responses. A free
//! permit goes to the visitor that holds the fewest permits, so one visitor cannot keep others from being answered.

use std::{
    cmp::Reverse,
    collections::{HashMap, VecDeque},
    net::IpAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::{sync::oneshot, time::timeout};

use super::Refusal;
use crate::task;

/// The maximum time that a request waits for a permit, unless the resource has another limit.
const PERMIT_TIMEOUT: Duration = Duration::from_secs(10);

/// The sender of a request. Requests of equal visitors share the limits for one visitor.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum Visitor {
    /// Any program on this machine, if the server listens only there and trusts no proxy. All such programs are one
    /// visitor, to which the limits for one visitor do not apply.
    Local,
    /// A client with an IPv4 address, or all clients in a 64-bit IPv6 network, because a single client can use all
    /// addresses of such a network.
    Network(IpAddr),
}

impl Visitor {
    /// Returns the visitor with the IP address `address`.
    pub(super) fn at(address: IpAddr) -> Visitor {
        Visitor::Network(match address.to_canonical() {
            IpAddr::V4(address) => address.into(),
            IpAddr::V6(address) => IpAddr::V6((address.to_bits() >> 64 << 64).into()),
        })
    }
}

/// The limits of a [`FairQueue`].
#[derive(Copy, Clone, Debug)]
pub(super) struct QueueLimits {
    /// The number of permits in total.
    pub(super) permits: usize,
    /// The maximum number of permits that one visitor holds.
    pub(super) held_by_one: usize,
    /// The maximum number of requests that wait in total.
    pub(super) waiting: usize,
    /// The maximum number of requests of one visitor that wait.
    pub(super) waiting_of_one: usize,
}

impl QueueLimits {
    /// The absence of limits. The limits of a resource are derived from it by replacing some fields.
    pub(super) const NONE: QueueLimits = QueueLimits {
        permits: usize::MAX,
        held_by_one: usize::MAX,
        waiting: usize::MAX,
        waiting_of_one: usize::MAX,
    };
}

/// Distributes the permits of one resource among the requests that wait for them.
///
/// When a permit becomes free, it goes to the waiting visitor that holds the fewest permits. If several visitors hold
/// equally few, it goes to the one whose last turn was the longest ago. Requests of one visitor are served in the order
/// in which they arrived.
#[derive(Clone)]
pub(super) struct FairQueue {
    limits: QueueLimits,
    state: Arc<Mutex<QueueState>>,
}

struct QueueState {
    free: usize,
    /// The visitors that hold permits or wait for permits.
    visitors: HashMap<Visitor, Turns>,
    /// The number of turns so far. In a turn, a request gets its permits.
    turns: u64,
    /// The number of requests so far, which becomes the number of the next request.
    requests: u64,
}

/// The permits and the waiting requests of one visitor.
#[derive(Default)]
struct Turns {
    held: usize,
    /// The number of the visitor's last turn, or 0 if it had none.
    last: u64,
    waiting: VecDeque<Waiting>,
}

/// A request that waits for `permits` permits. If the request is cancelled, the receiver of its channel is closed.
struct Waiting {
    /// A number that identifies the request in the queue.
    number: u64,
    permits: usize,
    sender: oneshot::Sender<Permit>,
}

/// One or more permits of a [`FairQueue`], which are released when this value is dropped.
pub(super) struct Permit {
    queue: FairQueue,
    visitor: Visitor,
    permits: usize,
}

impl Drop for Permit {
    fn drop(&mut self) {
        let granted = {
            let mut state = task::lock(&self.queue.state);
            state.free += self.permits;
            if let Some(turns) = state.visitors.get_mut(&self.visitor) {
                turns.held -= self.permits;
            }
            self.queue.grant(&mut state)
        };
        // If a request was cancelled, its permits are dropped here, after the lock is released.
        for (sender, permit) in granted {
            let _ = sender.send(permit);
        }
    }
}

impl Permit {
    /// Adds the permits of `other`, which must belong to the same visitor and queue.
    pub(super) fn merge(&mut self, mut other: Permit) {
        self.permits += std::mem::take(&mut other.permits);
    }

    /// Returns the number of permits.
    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.permits
    }
}

impl FairQueue {
    pub(super) fn new(limits: QueueLimits) -> FairQueue {
        let state = QueueState {
            free: limits.permits,
            visitors: HashMap::new(),
            turns: 0,
            requests: 0,
        };
        FairQueue {
            limits,
            state: Arc::new(Mutex::new(state)),
        }
    }

    /// Returns the maximum number of permits that `visitor` may hold.
    fn most_of(&self, visitor: Visitor) -> usize {
        match visitor {
            Visitor::Local => usize::MAX,
            Visitor::Network(_) => self.limits.held_by_one,
        }
    }

    /// Returns the number of permits that nobody holds.
    #[cfg(test)]
    pub(super) fn free(&self) -> usize {
        task::lock(&self.state).free
    }

    /// Returns `true` if `permits` more permits would exceed the limit of `visitor`, no matter how many permits other
    /// visitors hold.
    pub(super) fn exceeds(&self, visitor: Visitor, permits: usize) -> bool {
        let state = task::lock(&self.state);
        let held = state.visitors.get(&visitor).map_or(0, |turns| turns.held);
        held.saturating_add(permits) > self.most_of(visitor)
    }

    /// Acquires `permits` permits for `visitor` without waiting. Returns `None` if too few are free, if the visitor
    /// would hold too many, or if other requests are waiting.
    pub(super) fn try_acquire(&self, visitor: Visitor, permits: usize) -> Option<Permit> {
        let mut receiver = self.enqueue(visitor, permits, false)?;
        receiver.try_recv().ok()
    }

    /// Waits until `permits` permits are available for `visitor`, and acquires them.
    ///
    /// # Errors
    ///
    /// Returns the refusal `too_many` if too many requests of the visitor or of all visitors are already waiting. If
    /// another visitor has more requests in a full queue, the newest of these requests is refused instead.
    pub(super) async fn acquire(
        &self,
        visitor: Visitor,
        permits: usize,
        too_many: impl Fn() -> Refusal,
    ) -> Result<Permit, Refusal> {
        let receiver = self.enqueue(visitor, permits, true).ok_or_else(&too_many)?;
        receiver.await.map_err(|_| too_many())
    }

    /// Acquires `permits` permits for `visitor`, but waits for them for at most ten seconds.
    ///
    /// # Errors
    ///
    /// Returns a refusal after ten seconds, or for the same reasons as [`acquire`](FairQueue::acquire).
    pub(super) async fn acquire_soon(
        &self,
        visitor: Visitor,
        permits: usize,
    ) -> Result<Permit, Refusal> {
        let permit = timeout(
            PERMIT_TIMEOUT,
            self.acquire(visitor, permits, Refusal::too_many),
        );
        permit.await.unwrap_or_else(|_| Err(Refusal::too_many()))
    }

    /// Adds a request to the queue, and grants all permits that are available. Returns a receiver for the permits of
    /// the request, or `None` if the request is refused. If `waits` is `false`, the request is removed from the queue
    /// again unless it gets its permits at once.
    fn enqueue(
        &self,
        visitor: Visitor,
        permits: usize,
        waits: bool,
    ) -> Option<oneshot::Receiver<Permit>> {
        let (sender, mut receiver) = oneshot::channel();
        let mut state = task::lock(&self.state);
        for turns in state.visitors.values_mut() {
            turns.waiting.retain(|waiting| !waiting.sender.is_closed());
        }
        state.requests += 1;
        let number = state.requests;
        let turns = state.visitors.entry(visitor).or_default();
        turns.waiting.push_back(Waiting {
            number,
            permits,
            sender,
        });
        let granted = self.grant(&mut state);
        let newest = state
            .visitors
            .get(&visitor)
            .and_then(|turns| turns.waiting.back());
        let is_granted = newest.is_none_or(|newest| newest.number != number);
        let is_kept = is_granted || waits && self.make_room(&mut state, visitor);
        if !is_kept && let Some(turns) = state.visitors.get_mut(&visitor) {
            turns.waiting.pop_back();
        }
        state.remove_idle();
        drop(state);
        for (sender, permit) in granted {
            let _ = sender.send(permit);
        }
        if !is_kept {
            receiver.close();
        }
        is_kept.then_some(receiver)
    }

    /// Returns `true` if the newest waiting request, which belongs to `visitor`, may stay in the queue. If the queue is
    /// full but another visitor has more waiting requests, makes room by refusing the newest request of that visitor.
    fn make_room(&self, state: &mut QueueState, visitor: Visitor) -> bool {
        let own = state.visitors[&visitor].waiting.len();
        if matches!(visitor, Visitor::Network(_)) && own > self.limits.waiting_of_one {
            return false;
        }
        let all: usize = state
            .visitors
            .values()
            .map(|turns| turns.waiting.len())
            .sum();
        if all <= self.limits.waiting {
            return true;
        }
        let most = state.visitors.values_mut();
        let most = most.max_by_key(|turns| turns.waiting.len());
        match most.filter(|most| most.waiting.len() > own) {
            Some(most) => most.waiting.pop_back().is_some(),
            None => false,
        }
    }

    /// Grants free permits to waiting requests. The caller must send the permits after it has released the lock.
    fn grant(&self, state: &mut QueueState) -> Vec<(oneshot::Sender<Permit>, Permit)> {
        let mut granted = Vec::new();
        loop {
            let next = state.visitors.iter_mut().filter_map(|(visitor, turns)| {
                while turns
                    .waiting
                    .front()
                    .is_some_and(|next| next.sender.is_closed())
                {
                    turns.waiting.pop_front();
                }
                let permits = turns.waiting.front()?.permits;
                let is_allowed = turns.held.saturating_add(permits) <= self.most_of(*visitor);
                is_allowed.then_some((permits, *visitor, turns))
            });
            let next = next.max_by_key(|(_, _, turns)| Reverse((turns.held, turns.last)));
            let Some((permits, visitor, turns)) =
                next.filter(|(permits, ..)| *permits <= state.free)
            else {
                break;
            };
            let waiting = turns.waiting.pop_front().expect("its front was seen");
            state.free -= permits;
            state.turns += 1;
            turns.held += permits;
            turns.last = state.turns;
            let queue = self.clone();
            let permit = Permit {
                queue,
                visitor,
                permits,
            };
            granted.push((waiting.sender, permit));
        }
        state.remove_idle();
        granted
    }
}

impl QueueState {
    /// Removes the visitors that neither hold permits nor wait for permits.
    fn remove_idle(&mut self) {
        self.visitors
            .retain(|_, turns| turns.held > 0 || !turns.waiting.is_empty());
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;

    use proptest::{collection::vec, prelude::*};

    use super::*;

    fn visitor(number: u8) -> Visitor {
        Visitor::at([10, 0, 0, number].into())
    }

    fn queue(
        permits: usize,
        held_by_one: usize,
        waiting: usize,
        waiting_of_one: usize,
    ) -> FairQueue {
        FairQueue::new(QueueLimits {
            permits,
            held_by_one,
            waiting,
            waiting_of_one,
        })
    }

    /// Returns the result of a future that is ready, or `None`.
    fn ready<T>(future: impl Future<Output = T>) -> Option<T> {
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        match std::pin::pin!(future).poll(&mut context) {
            std::task::Poll::Ready(output) => Some(output),
            std::task::Poll::Pending => None,
        }
    }

    #[test]
    fn addresses_of_one_network_are_one_visitor() {
        let at = |address: &str| Visitor::at(address.parse().unwrap());
        assert_eq!(at("10.0.0.1"), at("::ffff:10.0.0.1"));
        assert_ne!(at("10.0.0.1"), at("10.0.0.2"));
        assert_eq!(at("2001:db8:0:1::1"), at("2001:db8:0:1:ffff::"));
        assert_ne!(at("2001:db8:0:1::1"), at("2001:db8:0:2::1"));
    }

    #[test]
    fn a_visitor_who_waits_alone_comes_before_the_second_request_of_another() {
        let queue = queue(1, 1, 100, 100);
        let first = queue.try_acquire(visitor(1), 1).unwrap();
        let mut many: Vec<_> = (0..50)
            .map(|_| queue.enqueue(visitor(1), 1, true).unwrap())
            .collect();
        let mut other = queue.enqueue(visitor(2), 1, true).unwrap();
        drop(first);
        let permit = other.try_recv().unwrap();
        assert!(many.iter_mut().all(|waiting| waiting.try_recv().is_err()));
        drop(permit);
        assert!(many[0].try_recv().is_ok());
    }

    #[test]
    fn a_full_queue_refuses_the_visitor_with_the_most_requests() {
        let queue = queue(1, 1, 4, 100);
        let held = queue.try_acquire(visitor(1), 1).unwrap();
        let mut many: Vec<_> = (0..4)
            .map(|_| queue.enqueue(visitor(1), 1, true).unwrap())
            .collect();
        assert!(queue.enqueue(visitor(1), 1, true).is_none());
        let mut other = queue.enqueue(visitor(2), 1, true).unwrap();
        let refused = many.pop().unwrap();
        assert!(ready(refused).unwrap().is_err());
        assert!(other.try_recv().is_err());
        drop(held);
        assert!(other.try_recv().is_ok());
    }

    #[test]
    fn limits_of_one_visitor_do_not_apply_to_programs_of_this_machine() {
        let queue = queue(9, 2, 9, 1);
        let permits = |visitor| {
            (0..5)
                .filter_map(|_| queue.try_acquire(visitor, 1))
                .collect::<Vec<_>>()
        };
        assert_eq!(permits(visitor(1)).len(), 2);
        assert_eq!(permits(Visitor::Local).len(), 5);
        let _all = queue.try_acquire(Visitor::Local, 9).unwrap();
        let wait = |visitor| {
            (0..3)
                .filter_map(|_| queue.enqueue(visitor, 1, true))
                .collect::<Vec<_>>()
        };
        assert_eq!(wait(visitor(1)).len(), 1);
        assert_eq!(wait(Visitor::Local).len(), 3);
    }

    #[test]
    fn a_large_request_is_not_overtaken_forever() {
        let queue = queue(4, 4, 9, 9);
        let small = queue.try_acquire(visitor(1), 2).unwrap();
        let mut large = queue.enqueue(visitor(2), 4, true).unwrap();
        // The visitor of the large request holds the fewest permits, so smaller requests wait behind it.
        assert!(queue.try_acquire(visitor(1), 1).is_none());
        drop(small);
        assert!(large.try_recv().is_ok());
    }

    proptest! {
        /// Whatever visitors do, permits are never lost, nobody holds too many, and nobody waits beside free permits.
        #[test]
        fn permits_are_neither_lost_nor_doubled(steps in vec((0u8..4, 1usize..4, 0u8..4), 1..60)) {
            let queue = queue(5, 3, 6, 3);
            let (mut held, mut waiting) = (Vec::new(), Vec::new());
            for (number, permits, action) in steps {
                match action {
                    0 => drop(held.pop()),
                    1 => drop(waiting.pop()),
                    2 => held.extend(queue.try_acquire(visitor(number), permits)),
                    _ => waiting.extend(queue.enqueue(visitor(number), permits, true)),
                }
                waiting.retain_mut(|receiver: &mut oneshot::Receiver<Permit>| match receiver.try_recv() {
                    Ok(permit) => { held.push(permit); false }
                    Err(err) => err == oneshot::error::TryRecvError::Empty,
                });
                let taken: usize = held.iter().map(Permit::count).sum();
                let state = task::lock(&queue.state);
                prop_assert_eq!(taken + state.free, 5);
                for (visitor, turns) in &state.visitors {
                    let own = held.iter().filter(|permit| permit.visitor == *visitor);
                    prop_assert_eq!(own.map(Permit::count).sum::<usize>(), turns.held);
                    prop_assert!(turns.held <= 3 && turns.waiting.len() <= 3);
                }
            }
            drop((held, waiting));
            prop_assert_eq!(task::lock(&queue.state).free, 5);
        }
    }
}
