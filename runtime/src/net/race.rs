//! Trying addresses side by side: the rules of the race, without sockets.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Orders addresses so that the families alternate as long as there are addresses of both, beginning with the family of
/// the first, and each family keeps its order.
pub(super) fn interleave(addresses: &[SocketAddr]) -> VecDeque<SocketAddr> {
    let Some(first) = addresses.first() else {
        return VecDeque::new();
    };
    let (mut one, mut other): (VecDeque<_>, VecDeque<_>) = addresses
        .iter()
        .partition(|address| address.is_ipv4() == first.is_ipv4());
    let mut ordered = VecDeque::with_capacity(addresses.len());
    while let Some(next) = one.pop_front().or_else(|| other.pop_front()) {
        ordered.push_back(next);
        std::mem::swap(&mut one, &mut other);
    }
    ordered
}

/// Attempts one address after the other until one succeeds. The next begins when one fails, or when `delay` is over since
/// the last began. Whatever still runs then is dropped.
///
/// # Errors
///
/// All failures, if nothing succeeds.
pub(super) async fn race<T, F, D>(
    waiting: VecDeque<SocketAddr>,
    attempt: impl Fn(SocketAddr) -> F,
    delay: impl Fn() -> D,
) -> Result<T, Vec<(SocketAddr, io::Error)>>
where
    F: Future<Output = io::Result<T>>,
    D: Future<Output = ()>,
{
    let mut race = Race {
        waiting,
        running: Vec::new(),
        failures: Vec::new(),
        delay: None,
    };
    poll_fn(|cx| race.poll(cx, &attempt, &delay)).await
}

struct Race<F, D> {
    waiting: VecDeque<SocketAddr>,
    running: Vec<(SocketAddr, Pin<Box<F>>)>,
    failures: Vec<(SocketAddr, io::Error)>,
    /// Until the next may begin; `None` if nobody waits.
    delay: Option<Pin<Box<D>>>,
}

impl<F, D> Race<F, D> {
    fn poll<T>(
        &mut self,
        cx: &mut Context<'_>,
        attempt: impl Fn(SocketAddr) -> F,
        delay: impl Fn() -> D,
    ) -> Poll<Result<T, Vec<(SocketAddr, io::Error)>>>
    where
        F: Future<Output = io::Result<T>>,
        D: Future<Output = ()>,
    {
        loop {
            let failed_before = self.failures.len();
            let mut index = 0;
            while let Some((address, runner)) = self.running.get_mut(index) {
                match runner.as_mut().poll(cx) {
                    Poll::Pending => index += 1,
                    Poll::Ready(Ok(winner)) => return Poll::Ready(Ok(winner)),
                    Poll::Ready(Err(error)) => {
                        self.failures.push((*address, error));
                        self.running.remove(index);
                    }
                }
            }
            let is_due = self
                .delay
                .as_mut()
                .is_none_or(|delay| delay.as_mut().poll(cx).is_ready());
            if !is_due && self.failures.len() == failed_before {
                return Poll::Pending;
            }
            let Some(address) = self.waiting.pop_front() else {
                self.delay = None;
                return match self.running.is_empty() {
                    true => Poll::Ready(Err(std::mem::take(&mut self.failures))),
                    false => Poll::Pending,
                };
            };
            self.running.push((address, Box::pin(attempt(address))));
            self.delay = Some(Box::pin(delay()));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};
    use std::rc::Rc;
    use std::task::Waker;

    use futures_channel::oneshot;

    use super::*;

    fn address(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    /// Addresses that differ in their port.
    fn numbered(count: u16) -> VecDeque<SocketAddr> {
        (1..=count)
            .map(|port| SocketAddr::from(([127, 0, 0, 1], port)))
            .collect()
    }

    /// A race whose runners and delays end when the test says so.
    #[derive(Default)]
    struct Course {
        runners: RefCell<Vec<(u16, oneshot::Sender<io::Result<u16>>)>>,
        delays: RefCell<Vec<oneshot::Sender<()>>>,
        dropped: Cell<usize>,
    }

    struct Dropped(Rc<Course>);

    impl Drop for Dropped {
        fn drop(&mut self) {
            self.0.dropped.set(self.0.dropped.get() + 1);
        }
    }

    impl Course {
        fn attempt(
            self: &Rc<Self>,
            address: SocketAddr,
        ) -> impl Future<Output = io::Result<u16>> + use<> {
            let (sender, receiver) = oneshot::channel();
            self.runners.borrow_mut().push((address.port(), sender));
            let dropped = Dropped(Rc::clone(self));
            async move {
                let _dropped = dropped;
                receiver.await.unwrap()
            }
        }

        fn delay(&self) -> impl Future<Output = ()> + use<> {
            let (sender, receiver) = oneshot::channel();
            self.delays.borrow_mut().push(sender);
            async move { receiver.await.unwrap() }
        }

        fn started(&self) -> Vec<u16> {
            self.runners
                .borrow()
                .iter()
                .map(|(port, _)| *port)
                .collect()
        }

        fn end(&self, port: u16, result: io::Result<u16>) {
            let mut runners = self.runners.borrow_mut();
            let at = runners
                .iter()
                .position(|(found, _)| *found == port)
                .unwrap();
            assert!(runners.remove(at).1.send(result).is_ok());
        }

        fn next_is_due(&self) {
            self.delays.borrow_mut().pop().unwrap().send(()).unwrap();
        }
    }

    type Outcome = Result<u16, Vec<(SocketAddr, io::Error)>>;

    fn run(
        count: u16,
        steps: impl FnOnce(&Course, &mut dyn FnMut() -> Poll<Outcome>),
    ) -> Rc<Course> {
        let course = Rc::new(Course::default());
        let mut race = Box::pin(race(
            numbered(count),
            |address| course.attempt(address),
            || course.delay(),
        ));
        let mut poll = || race.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        steps(&course, &mut poll);
        drop(race);
        course
    }

    fn refused() -> io::Result<u16> {
        Err(io::ErrorKind::ConnectionRefused.into())
    }

    #[test]
    fn families_alternate_from_the_first_on() {
        let given = ["[::1]:1", "[::1]:2", "[::1]:3", "1.1.1.1:1", "1.1.1.1:2"].map(address);
        let ordered = ["[::1]:1", "1.1.1.1:1", "[::1]:2", "1.1.1.1:2", "[::1]:3"].map(address);
        assert_eq!(interleave(&given), ordered);
        let given = ["1.1.1.1:1", "1.1.1.1:2", "[::1]:1"].map(address);
        let ordered = ["1.1.1.1:1", "[::1]:1", "1.1.1.1:2"].map(address);
        assert_eq!(interleave(&given), ordered);
        assert!(interleave(&[]).is_empty());
    }

    #[test]
    fn a_silent_address_is_joined_by_the_next_after_the_delay_and_the_first_answer_wins() {
        let course = run(3, |course, poll| {
            assert!(poll().is_pending());
            assert_eq!(course.started(), [1]);
            course.next_is_due();
            assert!(poll().is_pending());
            assert_eq!(course.started(), [1, 2]);
            course.end(2, Ok(2));
            assert!(matches!(poll(), Poll::Ready(Ok(2))));
            assert_eq!(course.started(), [1], "the third never began");
        });
        assert_eq!(course.dropped.get(), 2, "the loser is dropped");
    }

    #[test]
    fn a_late_answer_of_the_first_still_wins() {
        run(2, |course, poll| {
            assert!(poll().is_pending());
            course.next_is_due();
            assert!(poll().is_pending());
            course.end(1, Ok(1));
            assert!(matches!(poll(), Poll::Ready(Ok(1))));
        });
    }

    #[test]
    fn a_failure_starts_the_next_at_once_and_the_delay_anew() {
        run(3, |course, poll| {
            assert!(poll().is_pending());
            course.end(1, refused());
            assert!(poll().is_pending());
            assert_eq!(course.started(), [2]);
            assert_eq!(course.delays.borrow().len(), 2);
            course.next_is_due();
            assert!(poll().is_pending());
            assert_eq!(course.started(), [2, 3]);
            course.end(3, Ok(3));
            assert!(matches!(poll(), Poll::Ready(Ok(3))));
        });
    }

    #[test]
    fn all_failures_are_told_in_their_order() {
        run(2, |course, poll| {
            assert!(poll().is_pending());
            course.next_is_due();
            assert!(poll().is_pending());
            course.end(2, refused());
            assert!(poll().is_pending());
            course.end(1, Err(io::ErrorKind::TimedOut.into()));
            let Poll::Ready(Err(failures)) = poll() else {
                panic!("both failed")
            };
            let failures: Vec<_> = failures
                .iter()
                .map(|(address, error)| (address.port(), error.kind()))
                .collect();
            assert_eq!(
                failures,
                [
                    (2, io::ErrorKind::ConnectionRefused),
                    (1, io::ErrorKind::TimedOut)
                ]
            );
        });
        run(0, |_, poll| {
            assert!(matches!(poll(), Poll::Ready(Err(failures)) if failures.is_empty()));
        });
    }
}
