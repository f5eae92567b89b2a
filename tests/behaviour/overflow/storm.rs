//! Order and accounting of every policy in a storm.

use futures_util::future::{join, join_all};
use greenroom::prelude::*;
use greenroom_tests::{counts, last_shard, on_shards, settle};

use super::{DropsNewest, DropsOldest, Rejects, Subject, Told, Unbounded, Waits, subject};

/// How the actor fares in the storm.
#[derive(Clone, Copy, Debug)]
enum End {
    Lives,
    Stops,
    Killed,
}

/// What a sender knows of one message in the end.
#[derive(Debug, PartialEq)]
enum Known {
    Told,
    /// The argument came back.
    Refused,
    /// It did not.
    Lost,
    Answered,
    /// The handler was cut off.
    CutOff,
    /// Asked, and not handled.
    Unhandled,
}

const EACH: u64 = 240;

async fn send_in_storm<S: Subject>(to: Addr<S>, sender: u64) -> Vec<(u64, Known)> {
    let mut known = Vec::new();
    for first in (0..EACH).step_by(12) {
        let sends = (first..first + 12).map(|number| async move {
            let id = sender * EACH + number;
            let urgent = number % 2 == 1;
            let tell = |told: Told| match told {
                Ok(()) => Known::Told,
                Err(Some(_)) => Known::Refused,
                Err(None) => Known::Lost,
            };
            let known = match number / 2 % 3 {
                0 => tell(S::tell(to, urgent, id).await),
                1 => tell(S::try_tell(to, urgent, id)),
                _ => match S::ask(to, urgent, id).await {
                    Ok(answer) => {
                        assert_eq!(answer, id);
                        Known::Answered
                    }
                    Err(CallError::Killed(_)) => Known::CutOff,
                    Err(error) => {
                        assert!(error.is_overflowed() || error.is_stopped(), "{error}");
                        Known::Unhandled
                    }
                },
            };
            (id, known)
        });
        known.extend(join_all(sends).await);
    }
    known
}

fn storm<S: Subject>(system: &System, end: End) {
    let dead_before = counts(system).dead_letters;
    let (to, log) = subject::<S>(system, last_shard(system));
    let inside: Vec<_> = (0..)
        .zip(system.shards())
        .map(|(sender, shard)| {
            system
                .runtime()
                .spawn_on(shard, move || send_in_storm::<S>(to, sender))
        })
        .collect();
    let mut known = system.block_on(async {
        let outside = send_in_storm::<S>(to, 10);
        let ended = async {
            match end {
                End::Lives => {}
                End::Stops => Addr::stop(to),
                End::Killed => Addr::kill(to),
            }
        };
        join(outside, ended).await.0
    });
    for sender in inside {
        known.extend(system.block_on(sender).unwrap());
    }
    Addr::stop(to);
    system.block_on(Addr::stopped(to));
    for shard in system.shards() {
        let handle = system.handle().clone();
        let last = last_shard(system);
        system.run_on(shard, move || async move { settle(&handle, last).await });
    }
    let log = log.lock().unwrap();
    let times = |id: u64| log.iter().filter(|handled| **handled == id).count();
    let (mut lost, mut unsure) = (0, 0);
    for (id, known) in &known {
        let times = times(*id);
        match known {
            Known::Told => lost += u64::from(times == 0),
            Known::Refused => assert_eq!(times, 0, "{id} came back"),
            Known::Answered | Known::CutOff => assert_eq!(times, 1, "{id}"),
            Known::Lost | Known::Unhandled => {
                assert_eq!(times, 0, "{id}");
                unsure += 1;
            }
        }
        assert!(times <= 1, "{id} was handled {times} times");
    }
    let dead = counts(system).dead_letters - dead_before;
    let what = format!("{} {end:?}", S::NAME);
    assert!(dead >= lost, "{what}: {lost} were lost, {dead} counted");
    assert!(
        dead <= lost + unsure,
        "{what}: {lost} + {unsure}, {dead} counted"
    );
    if matches!(end, End::Lives) && !S::DROPS && !S::REJECTS {
        assert_eq!(unsure, 0, "{what}");
    }
    // In the order sent, in each lane of each sender.
    for lane in 0..2 {
        for sender in 0..=10 {
            let of_lane = log
                .iter()
                .filter(|id| **id / EACH == sender && **id % EACH % 2 == lane);
            assert!(of_lane.is_sorted(), "{what}");
        }
    }
}

#[test]
fn nothing_is_lost_or_overtaken_in_a_lane_whatever_the_policy_and_the_end() {
    fn check<S: Subject>(system: &System) {
        for end in [End::Lives, End::Stops, End::Killed] {
            storm::<S>(system, end);
        }
    }
    on_shards(&[1, 2, 4], |system| {
        check::<Waits>(system);
        check::<Rejects>(system);
        check::<DropsOldest>(system);
        check::<DropsNewest>(system);
        check::<Unbounded>(system);
    });
}
