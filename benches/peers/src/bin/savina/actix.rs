//! The benchmarks on actix: `do_send` for what is told, an arbiter on each core.

use std::sync::Arc;
use std::time::{Duration, Instant};

use actix::prelude::*;
use futures_util::future::{join_all, try_join_all};
use futures_util::stream::{self, StreamExt};
use tokio::sync::oneshot;

use super::colour::{COLOURS, Colour};
use super::{Random, Work, is_sum, pin, transfer, work};

pub fn run(parameters: Work<'_>) -> Duration {
    pin(0);
    let system = System::new();
    system.block_on(async {
        let cores = Cores::start(parameters.cores).await;
        let start = Instant::now();
        match parameters.benchmark {
            "counting" => counting(&cores, parameters.pick(1_000_000, 2_000)).await,
            "ping_pong" => ping_pong(&cores, parameters.pick(40_000, 500)).await,
            "thread_ring" => {
                let (stations, hops) = parameters.pick((100, 100_000), (10, 1_000));
                thread_ring(&cores, stations, hops).await;
            }
            "fork_join_create" => fork_join_create(&cores, parameters.pick(40_000, 200)).await,
            "fork_join_throughput" => {
                let (actors, messages) = parameters.pick((60, 10_000), (6, 100));
                fork_join_throughput(&cores, actors, messages).await;
            }
            "chameneos" => {
                let (chameneos, meetings) = parameters.pick((100, 200_000), (10, 500));
                chameneos_meet(&cores, chameneos, meetings).await;
            }
            "big" => {
                let (nodes, pings) = parameters.pick((120, 20_000), (12, 100));
                big(&cores, nodes, pings).await;
            }
            "bank_transaction" => {
                let (accounts, transfers) = parameters.pick((1_000, 50_000), (20, 200));
                bank_transaction(&cores, accounts, transfers).await;
            }
            other => panic!("there is no {other}"),
        }
        start.elapsed()
    })
}

/// One arbiter on each core, that of the system on the first.
struct Cores(Vec<ArbiterHandle>);

impl Cores {
    async fn start(count: usize) -> Self {
        let mut cores = vec![Arbiter::current()];
        for core in 1..count {
            let arbiter = Arbiter::new().handle();
            let (pinned, is_pinned) = oneshot::channel();
            arbiter.spawn_fn(move || {
                pin(core);
                pinned.send(()).unwrap();
            });
            is_pinned.await.unwrap();
            cores.push(arbiter);
        }
        Self(cores)
    }

    /// Starts an actor on the core of a number: they are dealt out in turn.
    fn spawn<A: Actor<Context = Context<A>> + Send>(&self, number: usize, actor: A) -> Addr<A> {
        match number % self.0.len() {
            0 => actor.start(),
            core => A::start_in_arbiter(&self.0[core], |_| actor),
        }
    }
}

macro_rules! actors {
    ($($actor:ty),*) => {
        $(impl Actor for $actor {
            type Context = Context<Self>;
        })*
    };
}

actors!(
    Counter, Producer, Pong, Ping, Station, Child, Parent, Worker, Mall, Chameneo, Node, Account,
    Teller
);

struct Counter(u64);
#[derive(Message)]
#[rtype("()")]
struct Increment;
#[derive(Message)]
#[rtype("u64")]
struct Count;
impl Handler<Increment> for Counter {
    type Result = ();
    fn handle(&mut self, _: Increment, _: &mut Context<Self>) {
        self.0 += 1;
    }
}
impl Handler<Count> for Counter {
    type Result = u64;
    fn handle(&mut self, _: Count, _: &mut Context<Self>) -> u64 {
        self.0
    }
}

struct Producer(Addr<Counter>);
#[derive(Message)]
#[rtype("u64")]
struct Produce(u64);
impl Handler<Produce> for Producer {
    type Result = ResponseFuture<u64>;
    fn handle(&mut self, message: Produce, _: &mut Context<Self>) -> ResponseFuture<u64> {
        for _ in 0..message.0 {
            self.0.do_send(Increment);
        }
        let count = self.0.send(Count);
        Box::pin(async { count.await.unwrap() })
    }
}

async fn counting(cores: &Cores, messages: u64) {
    let counter = cores.spawn(1, Counter(0));
    let producer = cores.spawn(0, Producer(counter));
    assert_eq!(producer.send(Produce(messages)).await.unwrap(), messages);
}

struct Pong(u64);
#[derive(Message)]
#[rtype("u64")]
struct OnePing;
impl Handler<OnePing> for Pong {
    type Result = u64;
    fn handle(&mut self, _: OnePing, _: &mut Context<Self>) -> u64 {
        self.0 += 1;
        self.0
    }
}

struct Ping(Addr<Pong>);
#[derive(Message)]
#[rtype("u64")]
struct Play(u64);
impl Handler<Play> for Ping {
    type Result = ResponseFuture<u64>;
    fn handle(&mut self, message: Play, _: &mut Context<Self>) -> ResponseFuture<u64> {
        let pong = self.0.clone();
        Box::pin(async move {
            let mut pongs = 0;
            for _ in 0..message.0 {
                pongs = pong.send(OnePing).await.unwrap();
            }
            pongs
        })
    }
}

async fn ping_pong(cores: &Cores, pings: u64) {
    let pong = cores.spawn(1, Pong(0));
    let ping = cores.spawn(0, Ping(pong));
    assert_eq!(ping.send(Play(pings)).await.unwrap(), pings);
}

#[derive(Default)]
struct Station {
    next: Option<Addr<Station>>,
    done: Option<oneshot::Sender<u64>>,
}
#[derive(Message)]
#[rtype("()")]
struct Connect(Addr<Station>);
#[derive(Message)]
#[rtype("u64")]
struct Start(u64);
#[derive(Message)]
#[rtype("()")]
struct Token {
    made: u64,
    left: u64,
}
impl Station {
    fn pass(&self, made: u64, left: u64) {
        self.next.as_ref().unwrap().do_send(Token {
            made: made + 1,
            left: left.saturating_sub(1),
        });
    }
}
impl Handler<Connect> for Station {
    type Result = ();
    fn handle(&mut self, message: Connect, _: &mut Context<Self>) {
        self.next = Some(message.0);
    }
}
impl Handler<Start> for Station {
    type Result = ResponseFuture<u64>;
    fn handle(&mut self, start: Start, _: &mut Context<Self>) -> ResponseFuture<u64> {
        let (done, is_done) = oneshot::channel();
        self.done = Some(done);
        self.pass(0, start.0);
        Box::pin(async { is_done.await.unwrap() })
    }
}
impl Handler<Token> for Station {
    type Result = ();
    fn handle(&mut self, token: Token, _: &mut Context<Self>) {
        match self.done.take() {
            Some(done) if token.left == 0 => done.send(token.made).unwrap(),
            done => {
                self.done = done;
                self.pass(token.made, token.left);
            }
        }
    }
}

async fn thread_ring(cores: &Cores, stations: usize, hops: u64) {
    let ring: Vec<_> = (0..stations)
        .map(|number| cores.spawn(number, Station::default()))
        .collect();
    for (number, station) in ring.iter().enumerate() {
        let next = ring[(number + 1) % stations].clone();
        station.send(Connect(next)).await.unwrap();
    }
    assert_eq!(ring[0].send(Start(hops)).await.unwrap(), hops);
}

struct Child;
#[derive(Message)]
#[rtype("()")]
struct Task(Addr<Parent>);
impl Handler<Task> for Child {
    type Result = ();
    fn handle(&mut self, task: Task, ctx: &mut Context<Self>) {
        task.0.do_send(Join(work()));
        ctx.stop();
    }
}

#[derive(Default)]
struct Parent {
    running: u64,
    sum: f64,
    done: Option<oneshot::Sender<f64>>,
}
#[derive(Message)]
#[rtype("f64")]
struct Fork(u64);
#[derive(Message)]
#[rtype("()")]
struct Join(f64);
impl Handler<Fork> for Parent {
    type Result = ResponseFuture<f64>;
    fn handle(&mut self, fork: Fork, ctx: &mut Context<Self>) -> ResponseFuture<f64> {
        let (done, is_done) = oneshot::channel();
        self.running = fork.0;
        self.done = Some(done);
        for _ in 0..fork.0 {
            Child.start().do_send(Task(ctx.address()));
        }
        Box::pin(async { is_done.await.unwrap() })
    }
}
impl Handler<Join> for Parent {
    type Result = ();
    fn handle(&mut self, join: Join, _: &mut Context<Self>) {
        self.sum += join.0;
        self.running -= 1;
        if self.running == 0 {
            self.done.take().unwrap().send(self.sum).unwrap();
        }
    }
}

async fn fork_join_create(cores: &Cores, workers: u64) {
    let share = workers / cores.0.len() as u64;
    let forks =
        (0..cores.0.len()).map(|core| cores.spawn(core, Parent::default()).send(Fork(share)));
    let sum: f64 = try_join_all(forks).await.unwrap().iter().sum();
    assert!(is_sum(sum, workers));
}

#[derive(Default)]
struct Worker {
    handled: u64,
    sum: f64,
}
#[derive(Message)]
#[rtype("()")]
struct OneTask;
#[derive(Message)]
#[rtype("u64")]
struct Handled;
impl Handler<OneTask> for Worker {
    type Result = ();
    fn handle(&mut self, _: OneTask, _: &mut Context<Self>) {
        self.handled += 1;
        self.sum += work();
    }
}
impl Handler<Handled> for Worker {
    type Result = u64;
    fn handle(&mut self, _: Handled, _: &mut Context<Self>) -> u64 {
        self.handled
    }
}

async fn fork_join_throughput(cores: &Cores, actors: usize, messages: u64) {
    let workers: Vec<_> = (0..actors)
        .map(|number| cores.spawn(number, Worker::default()))
        .collect();
    for _ in 0..messages {
        for worker in &workers {
            worker.do_send(OneTask);
        }
    }
    for worker in &workers {
        assert_eq!(worker.send(Handled).await.unwrap(), messages);
    }
}

struct Mall {
    meetings_left: u64,
    waiting: Option<(Colour, oneshot::Sender<Option<Colour>>)>,
}
#[derive(Message)]
#[rtype("Option<Colour>")]
struct Meet(Colour);
impl Handler<Meet> for Mall {
    type Result = ResponseFuture<Option<Colour>>;
    fn handle(&mut self, meet: Meet, _: &mut Context<Self>) -> ResponseFuture<Option<Colour>> {
        if self.meetings_left == 0 {
            return Box::pin(std::future::ready(None));
        }
        if let Some((other_colour, other)) = self.waiting.take() {
            self.meetings_left -= 1;
            other.send(Some(meet.0)).unwrap();
            return Box::pin(std::future::ready(Some(other_colour)));
        }
        let (sender, met) = oneshot::channel();
        self.waiting = Some((meet.0, sender));
        Box::pin(async { met.await.unwrap() })
    }
}

struct Chameneo(Colour);
#[derive(Message)]
#[rtype("u64")]
struct Live(Addr<Mall>);
impl Handler<Live> for Chameneo {
    type Result = ResponseFuture<u64>;
    fn handle(&mut self, live: Live, _: &mut Context<Self>) -> ResponseFuture<u64> {
        let mut colour = self.0;
        Box::pin(async move {
            let mut met = 0;
            while let Some(other) = live.0.send(Meet(colour)).await.unwrap() {
                colour = colour.after(other);
                met += 1;
            }
            met
        })
    }
}

async fn chameneos_meet(cores: &Cores, chameneos: usize, meetings: u64) {
    let mall = Mall {
        meetings_left: meetings,
        waiting: None,
    };
    let mall = cores.spawn(0, mall);
    let lives = (0..chameneos).map(|number| {
        let chameneo = cores.spawn(number, Chameneo(COLOURS[number % 3]));
        chameneo.send(Live(mall.clone()))
    });
    let met: u64 = try_join_all(lives).await.unwrap().iter().sum();
    assert_eq!(met, 2 * meetings);
}

struct Node {
    number: usize,
    all: Arc<[Addr<Node>]>,
    random: Random,
    pinged: usize,
    pings_left: u64,
    pongs: u64,
    done: Option<oneshot::Sender<u64>>,
}
#[derive(Message)]
#[rtype("()")]
struct Know(Arc<[Addr<Node>]>);
#[derive(Message)]
#[rtype("u64")]
struct StartPings(u64);
#[derive(Message)]
#[rtype("()")]
struct PingFrom(usize);
#[derive(Message)]
#[rtype("()")]
struct PongFrom(usize);
impl Node {
    fn ping_another(&mut self) {
        if self.pings_left == 0 {
            if let Some(done) = self.done.take() {
                done.send(self.pongs).unwrap();
            }
            return;
        }
        self.pings_left -= 1;
        self.pinged = self.random.below(self.all.len());
        self.all[self.pinged].do_send(PingFrom(self.number));
    }
}
impl Handler<Know> for Node {
    type Result = ();
    fn handle(&mut self, know: Know, _: &mut Context<Self>) {
        self.all = know.0;
    }
}
impl Handler<StartPings> for Node {
    type Result = ResponseFuture<u64>;
    fn handle(&mut self, start: StartPings, _: &mut Context<Self>) -> ResponseFuture<u64> {
        let (done, is_done) = oneshot::channel();
        self.pings_left = start.0;
        self.done = Some(done);
        self.ping_another();
        Box::pin(async { is_done.await.unwrap() })
    }
}
impl Handler<PingFrom> for Node {
    type Result = ();
    fn handle(&mut self, ping: PingFrom, _: &mut Context<Self>) {
        self.all[ping.0].do_send(PongFrom(self.number));
    }
}
impl Handler<PongFrom> for Node {
    type Result = ();
    fn handle(&mut self, pong: PongFrom, _: &mut Context<Self>) {
        assert_eq!(pong.0, self.pinged);
        self.pongs += 1;
        self.ping_another();
    }
}

async fn big(cores: &Cores, nodes: usize, pings: u64) {
    let all: Arc<[_]> = (0..nodes)
        .map(|number| {
            let node = Node {
                number,
                all: Arc::new([]),
                random: Random(number as u64),
                pinged: 0,
                pings_left: 0,
                pongs: 0,
                done: None,
            };
            cores.spawn(number, node)
        })
        .collect();
    for node in &*all {
        node.send(Know(all.clone())).await.unwrap();
    }
    let starts = all.iter().map(|node| node.send(StartPings(pings)));
    let pongs: u64 = try_join_all(starts).await.unwrap().iter().sum();
    assert_eq!(pongs, pings * nodes as u64);
}

struct Account(i64);
#[derive(Message)]
#[rtype("()")]
struct Transfer {
    cents: i64,
    to: Addr<Account>,
}
#[derive(Message)]
#[rtype("()")]
struct Deposit(i64);
#[derive(Message)]
#[rtype("i64")]
struct Balance;
impl Handler<Transfer> for Account {
    // Unlike a plain response, this one keeps other messages out until the other account has the money.
    type Result = AtomicResponse<Self, ()>;
    fn handle(&mut self, transfer: Transfer, _: &mut Context<Self>) -> AtomicResponse<Self, ()> {
        self.0 -= transfer.cents;
        let deposit = transfer.to.send(Deposit(transfer.cents));
        AtomicResponse::new(Box::pin(async { deposit.await.unwrap() }.into_actor(self)))
    }
}
impl Handler<Deposit> for Account {
    type Result = ();
    fn handle(&mut self, deposit: Deposit, _: &mut Context<Self>) {
        self.0 += deposit.0;
    }
}
impl Handler<Balance> for Account {
    type Result = i64;
    fn handle(&mut self, _: Balance, _: &mut Context<Self>) -> i64 {
        self.0
    }
}

struct Teller(Vec<Addr<Account>>);
#[derive(Message)]
#[rtype("()")]
struct Transfers(usize);
impl Handler<Transfers> for Teller {
    type Result = ResponseFuture<()>;
    fn handle(&mut self, message: Transfers, _: &mut Context<Self>) -> ResponseFuture<()> {
        let mut random = Random(123_456);
        let accounts = self.0.clone();
        Box::pin(async move {
            let transfers = (0..message.0).map(|_| {
                let (from, to, cents) = transfer(&mut random, accounts.len());
                let to = accounts[to].clone();
                // Sent when it is polled: not before there is room among those under way.
                let from = accounts[from].clone();
                async move { from.send(Transfer { cents, to }).await.unwrap() }
            });
            let mut under_way = stream::iter(transfers).buffer_unordered(1_000);
            while let Some(()) = under_way.next().await {}
        })
    }
}

async fn bank_transaction(cores: &Cores, accounts: usize, transfers: usize) {
    let accounts: Vec<_> = (0..accounts)
        .map(|number| cores.spawn(number, Account(1_000_000)))
        .collect();
    let teller = cores.spawn(0, Teller(accounts.clone()));
    teller.send(Transfers(transfers)).await.unwrap();
    let balances = join_all(accounts.iter().map(|account| account.send(Balance))).await;
    let sum: i64 = balances.into_iter().map(Result::unwrap).sum();
    assert_eq!(sum, 1_000_000 * accounts.len() as i64);
}
