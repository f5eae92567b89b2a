//! Topics: who publishes, and how a value gets to every subscriber.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use futures_channel::oneshot;
use greenroom_runtime::mesh::{self, Admission, Origin, Resident, ResidentId};

use super::branches::{Branches, poll_send, try_send};
use super::by_name::{ByName, CrowdError, Listed};
use super::subscription::{News, Patience, Queue, Subscription};
use crate::actor::Actor;
use crate::address::{Here, Local};
use crate::call::{Call, Method, ReplyMode};
use crate::context::Ctx;
use crate::errand::caught;
use crate::life::contain;
use crate::system::Handle;

/// What is published reaches every subscriber, on all shards.
///
/// Each subscriber has a queue with a bound of its own. [`Topic::publish`] never waits: a subscriber that is too slow misses
/// the oldest values, and hears how many ([`News::Missed`]). [`Topic::publish_when_room`] waits for the slowest.
/// A value travels to a shard once, however many subscribers are there.
///
/// The values of one publisher come in the order in which they were published. It is a handle: cloning it is cheap, and it can
/// be sent anywhere. The topic is there as long as a handle or a subscription is.
///
/// # Examples
/// ```
/// use greenroom::prelude::*;
/// use greenroom::{News, Topic};
///
/// #[derive(Default)]
/// struct Board { last: u32, missed: u64 }
///
/// #[actor]
/// impl Board {
///     #[on(started)]
///     fn started(&mut self, ctx: &mut Ctx<Self>) -> Result<(), greenroom::CrowdError> {
///         let prices: Topic<u32> = ctx.system().topic("prices")?;
///         ctx.subscribe(&prices, 16, |me, news| me.hear(news));
///         Ok(())
///     }
///     pub fn hear(&mut self, news: News<u32>) {
///         match news {
///             News::Value(price) => self.last = price,
///             News::Missed(count) => self.missed += count,
///         }
///     }
///     pub fn last(&self) -> u32 { self.last }
/// }
///
/// let system = System::start(2)?;
/// system.block_on(async {
///     let board = system.spawn_on(1, Board::default).await?;
///     let prices = system.topic::<u32>("prices")?;
///     prices.publish(7);
///     prices.publish_when_room(8).await;
///     while board.last().await? != 8 {}
///     Ok::<(), greenroom::Error>(())
/// })?;
/// # Ok::<(), greenroom::Error>(())
/// ```
pub struct Topic<T: Clone + Send + 'static> {
    shared: Arc<TopicShared<T>>,
}

/// What handles and subscriptions share.
pub(super) struct TopicShared<T: Clone + Send + 'static> {
    branches: Branches<Hall<T>>,
    /// For each shard, how many values publishers had to leave out because there was no room on the way.
    left_out: Arc<[AtomicU64]>,
    /// Frees the name.
    _listed: Option<Listed<TopicKind>>,
}

enum TopicKind {}

impl<T: Clone + Send + 'static> TopicShared<T> {
    fn new(system: &Handle, listed: Option<Listed<TopicKind>>) -> Self {
        Self {
            branches: Branches::new(system),
            left_out: system.shards().map(|_| AtomicU64::new(0)).collect(),
            _listed: listed,
        }
    }
}

impl Handle {
    /// The topic of a name, made if there is none.
    ///
    /// # Errors
    /// [`CrowdError`] if the topic of this name has values of another type.
    pub fn topic<T: Clone + Send + 'static>(&self, name: &str) -> Result<Topic<T>, CrowdError> {
        let topics = self.runtime().extension(ByName::<TopicKind>::default);
        let shared =
            topics.get_or_make::<T, _>(name, |listed| TopicShared::new(self, Some(listed)));
        shared.map(|shared| Topic { shared })
    }
}

/// The subscribers of one shard.
pub(super) struct Hall<T> {
    subscribers: RefCell<BTreeMap<u64, Subscriber<T>>>,
    next: Cell<u64>,
    left_out: Arc<[AtomicU64]>,
    shard: usize,
}

struct Subscriber<T> {
    queue: Rc<Queue<T>>,
    /// The actor, by the generation of its mailbox, and the subscription among its belongings.
    actor: Option<(u64, u64)>,
}

/// What travels to a hall.
pub(super) enum Parcel<T> {
    Value(T),
    /// Of a publisher that waits until everybody has room.
    Patient(T, oneshot::Sender<()>),
    /// Some were left out, and are counted.
    LeftOut,
}

impl<T: Clone + Send + 'static> Resident for Hall<T> {
    type Message = Parcel<T>;

    fn deliver(&self, parcel: Parcel<T>, _: Origin) {
        match parcel {
            Parcel::Value(value) => self.hand_out(value, None),
            Parcel::Patient(value, publisher) => self.hand_out(value, Some(&Rc::new(publisher))),
            Parcel::LeftOut => {
                // ORDERING: AcqRel; pairs with the `fetch_add` in `leave_out`: what is added after this swap finds zero, and
                // sends another parcel.
                let count = self.left_out[self.shard].swap(0, Ordering::AcqRel);
                self.each(|queue| queue.miss(count));
            }
        }
    }

    fn undeliverable(parcel: Parcel<T>) {
        contain(|| drop(parcel));
    }
}

impl<T: Clone> Hall<T> {
    /// Calls `f` with each queue that is there now, with nothing borrowed.
    fn each(&self, mut f: impl FnMut(&Queue<T>)) {
        let mut after = None;
        let end = self.next.get();
        loop {
            let next = {
                let subscribers = self.subscribers.borrow();
                let rest = subscribers.range(after.map_or(0, |last: u64| last + 1)..end);
                rest.map(|(number, subscriber)| (*number, subscriber.queue.clone()))
                    .next()
            };
            let Some((number, queue)) = next else { return };
            f(&queue);
            after = Some(number);
        }
    }

    fn hand_out(&self, value: T, patience: Option<&Patience>) {
        self.each(|queue| {
            let mut copy = None;
            // Anyone's code: if it panics this subscriber misses the value.
            contain(|| copy = Some(value.clone()));
            match copy {
                Some(copy) => queue.push(copy, patience),
                None => queue.miss(1),
            }
        });
        contain(|| drop(value));
    }
}

impl<T: Clone + Send + 'static> Hall<T> {
    /// A subscriber goes.
    pub(super) fn leave(topic: &TopicShared<T>, number: u64) {
        let hall = topic.branches.known_here();
        let gone = hall.and_then(|hall| {
            hall.visit(|hall| {
                let gone = hall.subscribers.borrow_mut().remove(&number);
                topic
                    .branches
                    .set_count_here(hall.subscribers.borrow().len());
                gone
            })
        });
        // With what it has not taken.
        contain(|| drop(gone));
    }

    fn join(&self, bound: usize, topic: &Arc<TopicShared<T>>) -> Subscription<T> {
        let number = self.next.get();
        self.next.set(number + 1);
        let queue = Rc::new(Queue::new(bound));
        self.subscribers.borrow_mut().insert(
            number,
            Subscriber {
                queue: queue.clone(),
                actor: None,
            },
        );
        topic
            .branches
            .set_count_here(self.subscribers.borrow().len());
        Subscription::new(queue, number, topic.clone())
    }

    /// The subscription of an actor, among its belongings.
    fn of_actor(&self, actor: u64) -> Option<u64> {
        let subscribers = self.subscribers.borrow();
        let mut all = subscribers.values();
        all.find_map(|subscriber| {
            let (owner, belonging) = subscriber.actor?;
            (owner == actor).then_some(belonging)
        })
    }
}

impl<T: Clone + Send + 'static> Topic<T> {
    /// A topic without a name.
    #[must_use]
    pub fn new(system: &Handle) -> Self {
        Self {
            shared: Arc::new(TopicShared::new(system, None)),
        }
    }

    /// How many subscribers there are.
    #[must_use]
    pub fn subscribers(&self) -> usize {
        self.shared.branches.count()
    }

    /// Subscribes on the calling shard. At most so many values wait for this subscriber.
    ///
    /// An actor that is to be sent the values subscribes with [`Ctx::subscribe`].
    ///
    /// # Panics
    /// If the calling thread is no shard of the system, or if no value is to wait.
    ///
    /// # Examples
    /// ```
    /// use greenroom::{News, System, Topic};
    /// let system = System::start(2)?;
    /// let ticks = Topic::new(system.handle());
    /// let heard = ticks.clone();
    /// let listening = system.runtime().spawn_on(1, move || async move {
    ///     let mut heard = heard.subscribe(2);
    ///     heard.next().await
    /// });
    /// while ticks.subscribers() == 0 {
    ///     std::thread::yield_now();
    /// }
    /// ticks.publish("tick");
    /// assert_eq!(system.block_on(listening)?, News::Value("tick"));
    /// # Ok::<(), greenroom::Error>(())
    /// ```
    #[track_caller]
    pub fn subscribe(&self, bound: usize) -> Subscription<T> {
        assert!(
            bound > 0,
            "a subscriber for whom no value may wait: the bound is 1 at least"
        );
        let hall = self.hall();
        hall.visit(|hall| hall.join(bound, &self.shared))
            .expect("the hall of a topic is there as long as the topic")
    }

    #[track_caller]
    fn hall(&self) -> ResidentId<Hall<T>> {
        let shared = &self.shared;
        shared.branches.here(|| Hall {
            subscribers: RefCell::default(),
            next: Cell::new(0),
            left_out: shared.left_out.clone(),
            shard: greenroom_runtime::current_shard().map_or(0, greenroom_runtime::ShardId::index),
        })
    }

    /// Sends a value to everybody who has subscribed, and does not wait for anything.
    ///
    /// On every thread. A subscriber without room misses its oldest value; those of a shard to which there is no room on the way
    /// miss this one. Both are told.
    pub fn publish(&self, value: T) {
        let mut branches = self.shared.branches.inhabited().peekable();
        let mut value = Some(value);
        while let Some((shard, hall)) = branches.next() {
            let copy = if branches.peek().is_some() {
                value.clone()
            } else {
                value.take()
            };
            let mut copy = copy;
            let build = || Parcel::Value(copy.take().expect("the last branch takes the value"));
            let sent = try_send(hall, build);
            if !sent {
                self.leave_out(shard, hall);
            }
        }
    }

    fn leave_out(&self, shard: usize, hall: ResidentId<Hall<T>>) {
        // ORDERING: AcqRel; pairs with the swap in `Hall::deliver`. Whoever finds zero sends the parcel that takes the count: there
        // is at most one on its way to each shard.
        if self.shared.left_out[shard].fetch_add(1, Ordering::AcqRel) == 0 {
            // A shard that is gone has no subscribers.
            drop(hall.post(Parcel::LeftOut));
        }
    }

    /// Sends a value to everybody who has subscribed, and waits until each of them has room for it.
    ///
    /// The value is in the queues before; the future is done when it lies within the bound of each, or was taken.
    ///
    /// An actor that has subscribed to the topic does not await this in a handler: what it waits for is taken when the handler has ended.
    ///
    /// # Cancel safety
    /// Dropped before it is done, the value may have been sent to some shards and not to others.
    pub fn publish_when_room(&self, value: T) -> PublishWhenRoom<T> {
        PublishWhenRoom {
            branches: self
                .shared
                .branches
                .inhabited()
                .map(|(_, hall)| hall)
                .collect(),
            _topic: self.shared.clone(),
            value,
            sent: 0,
            admission: Admission::default(),
            waiting: Vec::new(),
        }
    }
}

impl<T: Clone + Send + 'static> Clone for Topic<T> {
    fn clone(&self) -> Self {
        Self {
            shared: self.shared.clone(),
        }
    }
}

impl<T: Clone + Send + 'static> fmt::Debug for Topic<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Topic")
            .field("subscribers", &self.subscribers())
            .finish_non_exhaustive()
    }
}

/// The future of [`Topic::publish_when_room`].
#[must_use = "a value is published when the future is awaited"]
pub struct PublishWhenRoom<T: Clone + Send + 'static> {
    _topic: Arc<TopicShared<T>>,
    branches: Vec<ResidentId<Hall<T>>>,
    value: T,
    /// Branches that have it.
    sent: usize,
    admission: Admission,
    /// One for each branch; resolves, as cancelled, when everybody there has room.
    waiting: Vec<oneshot::Receiver<()>>,
}

impl<T: Clone + Send + 'static> Unpin for PublishWhenRoom<T> {}

impl<T: Clone + Send + 'static> Future for PublishWhenRoom<T> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        while let Some(hall) = this.branches.get(this.sent) {
            let (publisher, has_room) = oneshot::channel();
            // Cloned with nothing borrowed.
            let mut parcel = Some(Parcel::Patient(this.value.clone(), publisher));
            let build = || parcel.take().expect("built once");
            if poll_send(*hall, &mut this.admission, cx, build).is_pending() {
                return Poll::Pending;
            }
            this.sent += 1;
            this.waiting.push(has_room);
        }
        while let Some(waiting) = this.waiting.last_mut() {
            if Pin::new(waiting).poll(cx).is_pending() {
                return Poll::Pending;
            }
            this.waiting.pop();
        }
        Poll::Ready(())
    }
}

impl<T: Clone + Send + 'static> Drop for PublishWhenRoom<T> {
    fn drop(&mut self) {
        mesh::leave(&mut self.admission);
    }
}

impl<T: Clone + Send + 'static> fmt::Debug for PublishWhenRoom<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PublishWhenRoom")
            .field("branches", &self.branches.len())
            .field("sent", &self.sent)
            .finish_non_exhaustive()
    }
}

/// A task of a subscription; it ends with this.
struct Pump(greenroom_runtime::JoinHandle<()>);

impl Drop for Pump {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl<A: Actor> Ctx<A> {
    /// Lets a topic call this actor with every value, until the actor ends.
    ///
    /// `call` makes a call of what is heard. It is told in turn, when the mailbox has room; meanwhile at most `bound` values wait,
    /// and of those that are missed the actor hears the number. A second subscription to the same topic takes the place of
    /// the first.
    ///
    /// # Panics
    /// If no value is to wait. A panic in `call` ends the actor, like one in a handler.
    pub fn subscribe<T, F, M, B, Args>(&self, topic: &Topic<T>, bound: usize, call: F)
    where
        T: Clone + Send + 'static,
        F: Fn(Local<A>, News<T>) -> Call<Here<A>, M, Args, B> + 'static,
        M: ReplyMode + 'static,
        B: Method<Here<A>, M, Args> + 'static,
        Args: 'static,
    {
        self.unsubscribe(topic);
        let mut subscription = topic.subscribe(bound);
        let number = subscription.number();
        let me = self.local();
        let pump = caught(async move {
            // Until the actor takes no more.
            while call(me, subscription.next().await).tell().await.is_ok() {}
        });
        let me = me.id();
        let pump = greenroom_runtime::spawn(async move {
            if let Err(report) = pump.await {
                me.visit(|mailbox| mailbox.fail_beside(report));
            }
        });
        let belonging = me.visit(|mailbox| mailbox.own(Box::new(Pump(pump))).ok());
        if let Some(belonging) = belonging.flatten() {
            topic.hall().visit(|hall| {
                if let Some(subscriber) = hall.subscribers.borrow_mut().get_mut(&number) {
                    subscriber.actor = Some((me.number().1, belonging));
                }
            });
        }
    }

    /// Ends the actor's subscription; false if it has none to this topic.
    pub fn unsubscribe<T: Clone + Send + 'static>(&self, topic: &Topic<T>) -> bool {
        let me = self.local().id();
        let hall = topic.shared.branches.known_here();
        let belonging = hall.and_then(|hall| hall.visit(|hall| hall.of_actor(me.number().1)));
        let ended = belonging
            .flatten()
            .and_then(|belonging| me.visit(|mailbox| mailbox.disown(belonging)));
        ended.flatten().is_some()
    }
}
