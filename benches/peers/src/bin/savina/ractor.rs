//! The benchmarks on ractor: `cast` and `call`, state apart from the actor.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use futures_util::stream::{self, StreamExt};
use ractor::rpc::CallResult;
use ractor::{Actor, ActorProcessingErr, ActorRef, MessagingErr, RpcReplyPort};

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

type Handled = Result<(), ActorProcessingErr>;

/// Starts an actor whose arguments are its state.
async fn spawn<A, M, S>(actor: A, state: S) -> ActorRef<M>
where
    A: Actor<Msg = M, State = S, Arguments = S>,
    M: ractor::Message,
    S: ractor::State,
{
    Actor::spawn(None, actor, state).await.unwrap().0
}

async fn call<M: ractor::Message, R: Send + 'static>(
    actor: &ActorRef<M>,
    message: impl FnOnce(RpcReplyPort<R>) -> M,
) -> R {
    let called: Result<CallResult<R>, MessagingErr<M>> = actor.call(message, None).await;
    called.ok().unwrap().unwrap()
}

/// The part that all these actors have in common.
macro_rules! actor {
    ($actor:ident, $message:ty, $state:ty, |$this:ident, $msg:ident, $st:ident| $handle:block) => {
        struct $actor;
        impl Actor for $actor {
            type Msg = $message;
            type State = $state;
            type Arguments = $state;
            async fn pre_start(
                &self,
                _: ActorRef<$message>,
                state: $state,
            ) -> Result<$state, ActorProcessingErr> {
                Ok(state)
            }
            async fn handle(
                &self,
                $this: ActorRef<$message>,
                $msg: $message,
                $st: &mut $state,
            ) -> Handled {
                $handle
                Ok(())
            }
        }
    };
}

enum Count {
    Increment,
    Count(RpcReplyPort<u64>),
}
actor!(Counter, Count, u64, |_this, message, count| {
    match message {
        Count::Increment => *count += 1,
        Count::Count(reply) => reply.send(*count)?,
    }
});

struct Produce(u64, RpcReplyPort<u64>);
actor!(
    Producer,
    Produce,
    ActorRef<Count>,
    |_this, produce, counter| {
        for _ in 0..produce.0 {
            counter.cast(Count::Increment)?;
        }
        produce.1.send(call(counter, Count::Count).await)?;
    }
);

async fn counting(messages: u64) {
    let producer = spawn(Producer, spawn(Counter, 0).await).await;
    let count = call(&producer, |reply| Produce(messages, reply)).await;
    assert_eq!(count, messages);
}

struct OnePing(RpcReplyPort<u64>);
actor!(Pong, OnePing, u64, |_this, ping, pings| {
    *pings += 1;
    ping.0.send(*pings)?;
});

struct Play(u64, RpcReplyPort<u64>);
actor!(Ping, Play, ActorRef<OnePing>, |_this, play, pong| {
    let mut pongs = 0;
    for _ in 0..play.0 {
        pongs = call(pong, OnePing).await;
    }
    play.1.send(pongs)?;
});

async fn ping_pong(pings: u64) {
    let ping = spawn(Ping, spawn(Pong, 0).await).await;
    assert_eq!(call(&ping, |reply| Play(pings, reply)).await, pings);
}

enum Hop {
    Connect(ActorRef<Hop>),
    Start(u64, RpcReplyPort<u64>),
    Token { made: u64, left: u64 },
}
#[derive(Default)]
struct StationState {
    next: Option<ActorRef<Hop>>,
    done: Option<RpcReplyPort<u64>>,
}
impl StationState {
    fn pass(&self, made: u64, left: u64) {
        let token = Hop::Token {
            made: made + 1,
            left: left.saturating_sub(1),
        };
        self.next.as_ref().unwrap().cast(token).unwrap();
    }
}
actor!(Station, Hop, StationState, |_this, hop, state| {
    match hop {
        Hop::Connect(next) => state.next = Some(next),
        Hop::Start(hops, done) => {
            state.done = Some(done);
            state.pass(0, hops);
        }
        Hop::Token { made, left } => match state.done.take() {
            Some(done) if left == 0 => done.send(made)?,
            done => {
                state.done = done;
                state.pass(made, left);
            }
        },
    }
});

async fn thread_ring(stations: usize, hops: u64) {
    let mut ring = Vec::new();
    for _ in 0..stations {
        ring.push(spawn(Station, StationState::default()).await);
    }
    for (number, station) in ring.iter().enumerate() {
        let next = ring[(number + 1) % stations].clone();
        station.cast(Hop::Connect(next)).unwrap();
    }
    assert_eq!(call(&ring[0], |reply| Hop::Start(hops, reply)).await, hops);
}

struct Task(ActorRef<Family>);
actor!(Child, Task, (), |this, task, _state| {
    task.0.cast(Family::Join(work()))?;
    this.stop(None);
});

enum Family {
    Fork(u64, RpcReplyPort<f64>),
    Join(f64),
}
#[derive(Default)]
struct ParentState {
    running: u64,
    sum: f64,
    done: Option<RpcReplyPort<f64>>,
}
actor!(Parent, Family, ParentState, |this, message, state| {
    match message {
        Family::Fork(workers, done) => {
            state.running = workers;
            state.done = Some(done);
            for _ in 0..workers {
                spawn(Child, ()).await.cast(Task(this.clone()))?;
            }
        }
        Family::Join(result) => {
            state.sum += result;
            state.running -= 1;
            if state.running == 0 {
                state.done.take().unwrap().send(state.sum)?;
            }
        }
    }
});

async fn fork_join_create(workers: u64, parents: u64) {
    let share = workers / parents;
    let forks = (0..parents).map(async |_| {
        let parent = spawn(Parent, ParentState::default()).await;
        call(&parent, |reply| Family::Fork(share, reply)).await
    });
    let sum: f64 = join_all(forks).await.iter().sum();
    assert!(is_sum(sum, workers));
}

enum Job {
    One,
    Handled(RpcReplyPort<u64>),
}
actor!(Worker, Job, (u64, f64), |_this, job, state| {
    match job {
        Job::One => {
            state.0 += 1;
            state.1 += work();
        }
        Job::Handled(reply) => reply.send(state.0)?,
    }
});

async fn fork_join_throughput(actors: usize, messages: u64) {
    let mut workers = Vec::new();
    for _ in 0..actors {
        workers.push(spawn(Worker, (0, 0.0)).await);
    }
    for _ in 0..messages {
        for worker in &workers {
            worker.cast(Job::One).unwrap();
        }
    }
    for worker in &workers {
        assert_eq!(call(worker, Job::Handled).await, messages);
    }
}

struct Meet(Colour, RpcReplyPort<Option<Colour>>);
type MallState = (u64, Option<Meet>);
actor!(Mall, Meet, MallState, |_this, meet, state| {
    if state.0 == 0 {
        meet.1.send(None)?;
    } else if let Some(other) = state.1.take() {
        state.0 -= 1;
        other.1.send(Some(meet.0))?;
        meet.1.send(Some(other.0))?;
    } else {
        state.1 = Some(meet);
    }
});

struct Live(ActorRef<Meet>, RpcReplyPort<u64>);
actor!(Chameneo, Live, Colour, |_this, live, colour| {
    let mut met = 0;
    while let Some(other) = call(&live.0, |reply| Meet(*colour, reply)).await {
        *colour = colour.after(other);
        met += 1;
    }
    live.1.send(met)?;
});

async fn chameneos_meet(chameneos: usize, meetings: u64) {
    let mall = spawn(Mall, (meetings, None)).await;
    let mut all = Vec::new();
    for number in 0..chameneos {
        all.push(spawn(Chameneo, COLOURS[number % 3]).await);
    }
    let lives = all
        .iter()
        .map(|one| call(one, |reply| Live(mall.clone(), reply)));
    assert_eq!(join_all(lives).await.iter().sum::<u64>(), 2 * meetings);
}

enum Talk {
    Know(Arc<[ActorRef<Talk>]>),
    Start(u64, RpcReplyPort<u64>),
    Ping(usize),
    Pong(usize),
}
struct NodeState {
    number: usize,
    all: Arc<[ActorRef<Talk>]>,
    random: Random,
    pinged: usize,
    pings_left: u64,
    pongs: u64,
    done: Option<RpcReplyPort<u64>>,
}
impl NodeState {
    fn ping_another(&mut self) -> Handled {
        if self.pings_left == 0 {
            if let Some(done) = self.done.take() {
                done.send(self.pongs)?;
            }
            return Ok(());
        }
        self.pings_left -= 1;
        self.pinged = self.random.below(self.all.len());
        Ok(self.all[self.pinged].cast(Talk::Ping(self.number))?)
    }
}
actor!(Node, Talk, NodeState, |_this, talk, state| {
    match talk {
        Talk::Know(all) => state.all = all,
        Talk::Start(pings, done) => {
            state.pings_left = pings;
            state.done = Some(done);
            state.ping_another()?;
        }
        Talk::Ping(from) => state.all[from].cast(Talk::Pong(state.number))?,
        Talk::Pong(from) => {
            assert_eq!(from, state.pinged);
            state.pongs += 1;
            state.ping_another()?;
        }
    }
});

async fn big(nodes: usize, pings: u64) {
    let mut all = Vec::new();
    for number in 0..nodes {
        let state = NodeState {
            number,
            all: Arc::new([]),
            random: Random(number as u64),
            pinged: 0,
            pings_left: 0,
            pongs: 0,
            done: None,
        };
        all.push(spawn(Node, state).await);
    }
    let all: Arc<[_]> = all.into();
    for node in &*all {
        node.cast(Talk::Know(all.clone())).unwrap();
    }
    let starts = all
        .iter()
        .map(|one| call(one, |reply| Talk::Start(pings, reply)));
    let pongs: u64 = join_all(starts).await.iter().sum();
    assert_eq!(pongs, pings * nodes as u64);
}

enum Banking {
    Transfer(i64, ActorRef<Banking>, RpcReplyPort<()>),
    Deposit(i64, RpcReplyPort<()>),
    Balance(RpcReplyPort<i64>),
}
actor!(Account, Banking, i64, |_this, message, balance| {
    match message {
        Banking::Transfer(cents, to, done) => {
            *balance -= cents;
            call(&to, |reply| Banking::Deposit(cents, reply)).await;
            done.send(())?;
        }
        Banking::Deposit(cents, done) => {
            *balance += cents;
            done.send(())?;
        }
        Banking::Balance(reply) => reply.send(*balance)?,
    }
});

struct Transfers(usize, RpcReplyPort<()>);
actor!(
    Teller,
    Transfers,
    Vec<ActorRef<Banking>>,
    |_this, transfers, accounts| {
        let mut random = Random(123_456);
        let all: Vec<_> = (0..transfers.0)
            .map(|_| transfer(&mut random, accounts.len()))
            .collect();
        let accounts = &*accounts;
        let all = all.into_iter().map(|(from, to, cents)| {
            let to = accounts[to].clone();
            call(&accounts[from], move |reply| {
                Banking::Transfer(cents, to, reply)
            })
        });
        let mut under_way = stream::iter(all).buffer_unordered(1_000);
        while let Some(()) = under_way.next().await {}
        drop(under_way);
        transfers.1.send(())?;
    }
);

async fn bank_transaction(count: usize, transfers: usize) {
    let mut accounts = Vec::new();
    for _ in 0..count {
        accounts.push(spawn(Account, 1_000_000).await);
    }
    let teller = spawn(Teller, accounts.clone()).await;
    call(&teller, |reply| Transfers(transfers, reply)).await;
    let mut sum = 0;
    for account in &accounts {
        sum += call(account, Banking::Balance).await;
    }
    assert_eq!(sum, 1_000_000 * count as i64);
}
