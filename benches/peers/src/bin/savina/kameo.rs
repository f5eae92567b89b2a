//! The benchmarks on kameo: mailboxes without a bound, `tell` and `ask`.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{join_all, try_join_all};
use futures_util::stream::{self, StreamExt};
use kameo::mailbox::unbounded;
use kameo::prelude::*;
use kameo::reply::{DelegatedReply, ReplySender};

use super::colour::{COLOURS, Colour};
use super::tokio_cores::time;
use super::{Random, Work, is_sum, transfer, work};

pub fn run(parameters: Work<'_>) -> Duration {
    let cores = parameters.cores;
    match parameters.benchmark {
        "counting" => time(cores, counting(parameters.pick(1_000_000, 2_000))),
        "ping_pong" => time(cores, ping_pong(parameters.pick(40_000, 500))),
        "thread_ring" => {
            let (stations, hops) = parameters.pick((100, 100_000), (10, 1_000));
            time(cores, thread_ring(stations, hops))
        }
        "fork_join_create" => {
            let workers = parameters.pick(40_000, 200);
            time(cores, fork_join_create(workers, cores as u64))
        }
        "fork_join_throughput" => {
            let (actors, messages) = parameters.pick((60, 10_000), (6, 100));
            time(cores, fork_join_throughput(actors, messages))
        }
        "chameneos" => {
            let (chameneos, meetings) = parameters.pick((100, 200_000), (10, 500));
            time(cores, chameneos_meet(chameneos, meetings))
        }
        "big" => {
            let (nodes, pings) = parameters.pick((120, 20_000), (12, 100));
            time(cores, big(nodes, pings))
        }
        "bank_transaction" => {
            let (accounts, transfers) = parameters.pick((1_000, 50_000), (20, 200));
            time(cores, bank_transaction(accounts, transfers))
        }
        other => panic!("there is no {other}"),
    }
}

fn spawn<A: Actor<Args = A> + Spawn>(actor: A) -> ActorRef<A> {
    A::spawn_with_mailbox(actor, unbounded())
}

#[derive(Actor)]
struct Counter(u64);
struct Increment;
struct Count;
impl Message<Increment> for Counter {
    type Reply = ();
    async fn handle(&mut self, _: Increment, _: &mut Context<Self, ()>) {
        self.0 += 1;
    }
}
impl Message<Count> for Counter {
    type Reply = u64;
    async fn handle(&mut self, _: Count, _: &mut Context<Self, u64>) -> u64 {
        self.0
    }
}

#[derive(Actor)]
struct Producer(ActorRef<Counter>);
struct Produce(u64);
impl Message<Produce> for Producer {
    type Reply = u64;
    async fn handle(&mut self, message: Produce, _: &mut Context<Self, u64>) -> u64 {
        for _ in 0..message.0 {
            self.0.tell(Increment).await.unwrap();
        }
        self.0.ask(Count).await.unwrap()
    }
}

async fn counting(messages: u64) {
    let producer = spawn(Producer(spawn(Counter(0))));
    assert_eq!(producer.ask(Produce(messages)).await.unwrap(), messages);
}

#[derive(Actor)]
struct Pong(u64);
struct OnePing;
impl Message<OnePing> for Pong {
    type Reply = u64;
    async fn handle(&mut self, _: OnePing, _: &mut Context<Self, u64>) -> u64 {
        self.0 += 1;
        self.0
    }
}

#[derive(Actor)]
struct Ping(ActorRef<Pong>);
struct Play(u64);
impl Message<Play> for Ping {
    type Reply = u64;
    async fn handle(&mut self, message: Play, _: &mut Context<Self, u64>) -> u64 {
        let mut pongs = 0;
        for _ in 0..message.0 {
            pongs = self.0.ask(OnePing).await.unwrap();
        }
        pongs
    }
}

async fn ping_pong(pings: u64) {
    let ping = spawn(Ping(spawn(Pong(0))));
    assert_eq!(ping.ask(Play(pings)).await.unwrap(), pings);
}

#[derive(Actor, Default)]
struct Station {
    next: Option<ActorRef<Station>>,
    done: Option<ReplySender<u64>>,
}
struct Connect(ActorRef<Station>);
struct Start(u64);
struct Token {
    made: u64,
    left: u64,
}
impl Station {
    async fn pass(&self, made: u64, left: u64) {
        let token = Token {
            made: made + 1,
            left: left.saturating_sub(1),
        };
        self.next.as_ref().unwrap().tell(token).await.unwrap();
    }
}
impl Message<Connect> for Station {
    type Reply = ();
    async fn handle(&mut self, message: Connect, _: &mut Context<Self, ()>) {
        self.next = Some(message.0);
    }
}
impl Message<Start> for Station {
    type Reply = DelegatedReply<u64>;
    async fn handle(
        &mut self,
        message: Start,
        ctx: &mut Context<Self, Self::Reply>,
    ) -> Self::Reply {
        let (reply, done) = ctx.reply_sender();
        self.done = done;
        self.pass(0, message.0).await;
        reply
    }
}
impl Message<Token> for Station {
    type Reply = ();
    async fn handle(&mut self, token: Token, _: &mut Context<Self, ()>) {
        if token.left == 0
            && let Some(done) = self.done.take()
        {
            return done.send(token.made);
        }
        self.pass(token.made, token.left).await;
    }
}

async fn thread_ring(stations: usize, hops: u64) {
    let ring: Vec<_> = (0..stations).map(|_| spawn(Station::default())).collect();
    for (number, station) in ring.iter().enumerate() {
        let next = ring[(number + 1) % stations].clone();
        station.ask(Connect(next)).await.unwrap();
    }
    assert_eq!(ring[0].ask(Start(hops)).await.unwrap(), hops);
}

#[derive(Actor)]
struct Child;
struct Task(ActorRef<Parent>);
impl Message<Task> for Child {
    type Reply = ();
    async fn handle(&mut self, task: Task, ctx: &mut Context<Self, ()>) {
        task.0.tell(Join(work())).await.unwrap();
        ctx.stop();
    }
}

#[derive(Actor, Default)]
struct Parent {
    running: u64,
    sum: f64,
    done: Option<ReplySender<f64>>,
}
struct Fork(u64);
struct Join(f64);
impl Message<Fork> for Parent {
    type Reply = DelegatedReply<f64>;
    async fn handle(&mut self, fork: Fork, ctx: &mut Context<Self, Self::Reply>) -> Self::Reply {
        let (reply, done) = ctx.reply_sender();
        self.running = fork.0;
        self.done = done;
        for _ in 0..fork.0 {
            let task = Task(ctx.actor_ref().clone());
            spawn(Child).tell(task).await.unwrap();
        }
        reply
    }
}
impl Message<Join> for Parent {
    type Reply = ();
    async fn handle(&mut self, join: Join, _: &mut Context<Self, ()>) {
        self.sum += join.0;
        self.running -= 1;
        if self.running == 0 {
            self.done.take().unwrap().send(self.sum);
        }
    }
}

async fn fork_join_create(workers: u64, parents: u64) {
    let parents: Vec<_> = (0..parents).map(|_| spawn(Parent::default())).collect();
    let share = workers / parents.len() as u64;
    let forks = parents.iter().map(|one| one.ask(Fork(share)).into_future());
    let sum: f64 = try_join_all(forks).await.unwrap().iter().sum();
    assert!(is_sum(sum, workers));
}

#[derive(Actor, Default)]
struct Worker {
    handled: u64,
    sum: f64,
}
struct OneTask;
struct Handled;
impl Message<OneTask> for Worker {
    type Reply = ();
    async fn handle(&mut self, _: OneTask, _: &mut Context<Self, ()>) {
        self.handled += 1;
        self.sum += work();
    }
}
impl Message<Handled> for Worker {
    type Reply = u64;
    async fn handle(&mut self, _: Handled, _: &mut Context<Self, u64>) -> u64 {
        self.handled
    }
}

async fn fork_join_throughput(actors: usize, messages: u64) {
    let workers: Vec<_> = (0..actors).map(|_| spawn(Worker::default())).collect();
    for _ in 0..messages {
        for worker in &workers {
            worker.tell(OneTask).await.unwrap();
        }
    }
    for worker in &workers {
        assert_eq!(worker.ask(Handled).await.unwrap(), messages);
    }
}

#[derive(Actor)]
struct Mall {
    meetings_left: u64,
    waiting: Option<(Colour, ReplySender<Option<Colour>>)>,
}
struct Meet(Colour);
impl Message<Meet> for Mall {
    type Reply = DelegatedReply<Option<Colour>>;
    async fn handle(&mut self, meet: Meet, ctx: &mut Context<Self, Self::Reply>) -> Self::Reply {
        if self.meetings_left == 0 {
            return ctx.reply(None);
        }
        let (reply, sender) = ctx.reply_sender();
        let sender = sender.unwrap();
        match self.waiting.take() {
            None => self.waiting = Some((meet.0, sender)),
            Some((other_colour, other)) => {
                self.meetings_left -= 1;
                other.send(Some(meet.0));
                sender.send(Some(other_colour));
            }
        }
        reply
    }
}

#[derive(Actor)]
struct Chameneo(Colour);
struct Live(ActorRef<Mall>);
impl Message<Live> for Chameneo {
    type Reply = u64;
    async fn handle(&mut self, live: Live, _: &mut Context<Self, u64>) -> u64 {
        let mut met = 0;
        while let Some(other) = live.0.ask(Meet(self.0)).await.unwrap() {
            self.0 = self.0.after(other);
            met += 1;
        }
        met
    }
}

async fn chameneos_meet(chameneos: usize, meetings: u64) {
    let mall = spawn(Mall {
        meetings_left: meetings,
        waiting: None,
    });
    let chameneos: Vec<_> = (0..chameneos)
        .map(|number| spawn(Chameneo(COLOURS[number % 3])))
        .collect();
    let lives = chameneos
        .iter()
        .map(|one| one.ask(Live(mall.clone())).into_future());
    let met: u64 = try_join_all(lives).await.unwrap().iter().sum();
    assert_eq!(met, 2 * meetings);
}

#[derive(Actor)]
struct Node {
    number: usize,
    all: Arc<[ActorRef<Node>]>,
    random: Random,
    pinged: usize,
    pings_left: u64,
    pongs: u64,
    done: Option<ReplySender<u64>>,
}
struct Know(Arc<[ActorRef<Node>]>);
struct StartPings(u64);
struct PingFrom(usize);
struct PongFrom(usize);
impl Node {
    async fn ping_another(&mut self) {
        if self.pings_left == 0 {
            if let Some(done) = self.done.take() {
                done.send(self.pongs);
            }
            return;
        }
        self.pings_left -= 1;
        self.pinged = self.random.below(self.all.len());
        let ping = PingFrom(self.number);
        self.all[self.pinged].tell(ping).await.unwrap();
    }
}
impl Message<Know> for Node {
    type Reply = ();
    async fn handle(&mut self, know: Know, _: &mut Context<Self, ()>) {
        self.all = know.0;
    }
}
impl Message<StartPings> for Node {
    type Reply = DelegatedReply<u64>;
    async fn handle(
        &mut self,
        start: StartPings,
        ctx: &mut Context<Self, Self::Reply>,
    ) -> Self::Reply {
        let (reply, done) = ctx.reply_sender();
        self.pings_left = start.0;
        self.done = done;
        self.ping_another().await;
        reply
    }
}
impl Message<PingFrom> for Node {
    type Reply = ();
    async fn handle(&mut self, ping: PingFrom, _: &mut Context<Self, ()>) {
        let pong = PongFrom(self.number);
        self.all[ping.0].tell(pong).await.unwrap();
    }
}
impl Message<PongFrom> for Node {
    type Reply = ();
    async fn handle(&mut self, pong: PongFrom, _: &mut Context<Self, ()>) {
        assert_eq!(pong.0, self.pinged);
        self.pongs += 1;
        self.ping_another().await;
    }
}

async fn big(nodes: usize, pings: u64) {
    let all: Arc<[_]> = (0..nodes)
        .map(|number| {
            spawn(Node {
                number,
                all: Arc::new([]),
                random: Random(number as u64),
                pinged: 0,
                pings_left: 0,
                pongs: 0,
                done: None,
            })
        })
        .collect();
    for node in &*all {
        node.ask(Know(all.clone())).await.unwrap();
    }
    let starts = all
        .iter()
        .map(|one| one.ask(StartPings(pings)).into_future());
    let pongs: u64 = try_join_all(starts).await.unwrap().iter().sum();
    assert_eq!(pongs, pings * nodes as u64);
}

#[derive(Actor)]
struct Account(i64);
struct Transfer {
    cents: i64,
    to: ActorRef<Account>,
}
struct Deposit(i64);
struct Balance;
impl Message<Transfer> for Account {
    type Reply = ();
    async fn handle(&mut self, transfer: Transfer, _: &mut Context<Self, ()>) {
        self.0 -= transfer.cents;
        transfer.to.ask(Deposit(transfer.cents)).await.unwrap();
    }
}
impl Message<Deposit> for Account {
    type Reply = ();
    async fn handle(&mut self, deposit: Deposit, _: &mut Context<Self, ()>) {
        self.0 += deposit.0;
    }
}
impl Message<Balance> for Account {
    type Reply = i64;
    async fn handle(&mut self, _: Balance, _: &mut Context<Self, i64>) -> i64 {
        self.0
    }
}

#[derive(Actor)]
struct Teller(Vec<ActorRef<Account>>);
struct Transfers(usize);
impl Message<Transfers> for Teller {
    type Reply = ();
    async fn handle(&mut self, message: Transfers, _: &mut Context<Self, ()>) {
        let mut random = Random(123_456);
        let accounts = &self.0;
        let transfers = (0..message.0).map(|_| {
            let (from, to, cents) = transfer(&mut random, accounts.len());
            let to = accounts[to].clone();
            accounts[from].ask(Transfer { cents, to }).into_future()
        });
        let transfers = transfers.collect::<Vec<_>>();
        let mut transfers = stream::iter(transfers).buffer_unordered(1_000);
        while let Some(done) = transfers.next().await {
            done.unwrap();
        }
    }
}

async fn bank_transaction(accounts: usize, transfers: usize) {
    let accounts: Vec<_> = (0..accounts).map(|_| spawn(Account(1_000_000))).collect();
    let teller = spawn(Teller(accounts.clone()));
    teller.ask(Transfers(transfers)).await.unwrap();
    let balances = join_all(accounts.iter().map(|one| one.ask(Balance).into_future())).await;
    let sum: i64 = balances.into_iter().map(Result::unwrap).sum();
    assert_eq!(sum, 1_000_000 * accounts.len() as i64);
}
