//! Random sequences of operations, against models that are too simple to be wrong.

use std::collections::VecDeque;

use greenroom_runtime::sync::Sharing;
use greenroom_runtime::sync::generic::mpsc::{Sending, TryRecvError, TrySendError};
use greenroom_runtime::sync::generic::semaphore::{Acquire, Permit, Semaphore, TryAcquireError};
use greenroom_runtime::sync::generic::{broadcast, mpsc};
use proptest::collection::vec;
use proptest::prelude::{Strategy, any};
use proptest::test_runner::{Config, TestRunner};

use crate::support::Probe;

for_both_kinds! {
    a_channel_does_what_a_queue_with_a_line_does
    a_semaphore_does_what_a_number_with_a_line_does
    a_broadcast_does_what_a_log_with_positions_does
}

/// Runs `check` on random programs; the runner prints the smallest one that fails, and its seed.
fn on_random_programs(check: impl Fn(Vec<(u8, usize)>)) {
    let mut runner = TestRunner::new(Config {
        failure_persistence: None,
        ..Config::with_cases(300)
    });
    let programs = vec((any::<u8>(), any::<u8>().prop_map(usize::from)), 0..60);
    let checked = runner.run(&programs, |program| {
        check(program);
        Ok(())
    });
    checked.unwrap();
}

/// Somebody in a line: what it asks for, and whether it was given that.
struct Place<W> {
    wants: usize,
    is_granted: bool,
    probe: Probe<W>,
}

/// Grants what `free` allows, in order; returns what is left.
fn grant<W: Future>(line: &mut [Place<W>], mut free: usize) -> usize {
    for place in line.iter_mut().filter(|place| !place.is_granted) {
        if place.wants > free {
            break;
        }
        free -= place.wants;
        place.is_granted = true;
        assert!(place.probe.is_woken(), "granted, and not woken");
    }
    for place in line.iter_mut().filter(|place| !place.is_granted) {
        assert!(!place.probe.is_woken(), "woken, and not granted");
    }
    free
}

#[expect(
    clippy::too_many_lines,
    reason = "an arm for each operation of a program"
)]
fn a_channel_does_what_a_queue_with_a_line_does<K: Sharing>() {
    on_random_programs(|program| {
        let capacity = 1 + program.len() % 3;
        let (sender, mut receiver) = mpsc::channel::<usize, K>(capacity);
        let mut queue = VecDeque::new();
        // The value of a place is its `wants` number in `values`; it always wants one place.
        let mut line: Vec<Place<Sending<'_, usize, K>>> = Vec::new();
        let mut values: Vec<usize> = Vec::new();
        let mut is_closed = false;
        for (step, (operation, pick)) in program.into_iter().enumerate() {
            let granted = line.iter().filter(|place| place.is_granted).count();
            let free = capacity - queue.len() - granted;
            match operation % 8 {
                0 | 1 => match sender.try_send(step) {
                    Ok(()) => {
                        assert!(!is_closed && free > 0 && granted == line.len());
                        queue.push_back(step);
                    }
                    Err(TrySendError::Full(_)) => assert!(free == 0 || granted < line.len()),
                    Err(TrySendError::Closed(_)) => assert!(is_closed),
                },
                2 | 3 => {
                    let mut probe = Probe::new(sender.send(step));
                    if probe.poll().is_ready() {
                        if !is_closed {
                            assert!(free > 0 && granted == line.len());
                            queue.push_back(step);
                        }
                    } else {
                        assert!(!is_closed && (free == 0 || granted < line.len()));
                        values.push(step);
                        line.push(Place {
                            wants: 1,
                            is_granted: false,
                            probe,
                        });
                    }
                }
                4 if !line.is_empty() => {
                    let index = pick % line.len();
                    if line[index].probe.poll().is_ready() {
                        let place = line.remove(index);
                        let value = values.remove(index);
                        if place.is_granted {
                            queue.push_back(value);
                        } else {
                            assert!(is_closed);
                        }
                    } else {
                        assert!(!line[index].is_granted && !is_closed);
                    }
                }
                5 if !line.is_empty() => {
                    let index = pick % line.len();
                    drop(line.remove(index));
                    values.remove(index);
                }
                6 => match receiver.try_recv() {
                    Ok(value) => assert_eq!(Some(value), queue.pop_front()),
                    Err(TryRecvError::Empty) => assert!(queue.is_empty()),
                    Err(TryRecvError::Closed) => {
                        assert!(is_closed && queue.is_empty() && granted == 0);
                    }
                },
                7 if pick % 16 == 0 => {
                    receiver.close();
                    is_closed = true;
                }
                _ => {}
            }
            assert_eq!(receiver.len(), queue.len());
            let granted = line.iter().filter(|place| place.is_granted).count();
            let free = capacity - queue.len() - granted;
            if !is_closed {
                assert_eq!(sender.capacity(), grant(&mut line, free));
            }
        }
    });
}

#[expect(
    clippy::too_many_lines,
    reason = "an arm for each operation of a program"
)]
fn a_semaphore_does_what_a_number_with_a_line_does<K: Sharing>() {
    on_random_programs(|program| {
        let mut free = program.len() % 5;
        let semaphore = Semaphore::<K>::new(free);
        let mut line: Vec<Place<Acquire<K>>> = Vec::new();
        let mut held: Vec<Permit<K>> = Vec::new();
        let mut is_closed = false;
        for (operation, pick) in program {
            let wants = pick % 4;
            let nobody_waits = line.iter().all(|place| place.is_granted);
            match operation % 8 {
                0 => match semaphore.try_acquire_many(wants) {
                    Ok(permit) => {
                        assert!(!is_closed && wants <= free && (nobody_waits || wants == 0));
                        free -= wants;
                        held.push(permit);
                    }
                    Err(TryAcquireError::NoPermits) => assert!(wants > free || !nobody_waits),
                    Err(TryAcquireError::Closed) => assert!(is_closed),
                },
                1 | 2 => {
                    let mut probe = Probe::new(semaphore.acquire_many(wants));
                    match probe.poll() {
                        std::task::Poll::Ready(Ok(permit)) => {
                            assert!(!is_closed && wants <= free && (nobody_waits || wants == 0));
                            free -= wants;
                            held.push(permit);
                        }
                        std::task::Poll::Ready(Err(_)) => assert!(is_closed),
                        std::task::Poll::Pending => line.push(Place {
                            wants,
                            is_granted: false,
                            probe,
                        }),
                    }
                }
                3 if !line.is_empty() => {
                    let index = pick % line.len();
                    if let std::task::Poll::Ready(outcome) = line[index].probe.poll() {
                        assert_eq!(outcome.is_ok(), line[index].is_granted);
                        held.extend(outcome);
                        drop(line.remove(index));
                    } else {
                        assert!(!line[index].is_granted && !is_closed);
                    }
                }
                4 if !line.is_empty() => {
                    let place = line.remove(pick % line.len());
                    free += if place.is_granted { place.wants } else { 0 };
                    drop(place);
                }
                5 if !held.is_empty() => {
                    let permit = held.swap_remove(pick % held.len());
                    free += permit.count();
                    drop(permit);
                }
                6 => {
                    semaphore.add_permits(wants);
                    free += wants;
                }
                7 if pick % 16 == 0 => {
                    semaphore.close();
                    is_closed = true;
                }
                7 => free -= semaphore.forget_permits(wants),
                _ => {}
            }
            if !is_closed {
                free = grant(&mut line, free);
            }
            assert_eq!(semaphore.available_permits(), free);
        }
    });
}

fn a_broadcast_does_what_a_log_with_positions_does<K: Sharing>() {
    on_random_programs(|program| {
        let capacity = 1 + program.len() % 4;
        let (sender, first) = broadcast::channel::<usize, K>(capacity);
        let mut log: Vec<usize> = Vec::new();
        let mut receivers = vec![(first, 0)];
        for (step, (operation, pick)) in program.into_iter().enumerate() {
            match operation % 6 {
                0..=2 => {
                    let sent = sender.send(step);
                    if receivers.is_empty() {
                        assert_eq!(sent, Err(broadcast::SendError(step)));
                    } else {
                        assert_eq!(sent, Ok(receivers.len()));
                        log.push(step);
                    }
                }
                3 | 4 if !receivers.is_empty() => {
                    let index = pick % receivers.len();
                    let (receiver, next) = &mut receivers[index];
                    let oldest = log.len().saturating_sub(capacity);
                    let expected = if *next < oldest {
                        let missed = (oldest - *next) as u64;
                        *next = oldest;
                        Err(broadcast::TryRecvError::Lagged(missed))
                    } else if *next < log.len() {
                        *next += 1;
                        Ok(log[*next - 1])
                    } else {
                        Err(broadcast::TryRecvError::Empty)
                    };
                    assert_eq!(receiver.try_recv(), expected);
                    assert_eq!(receiver.len(), log.len() - *next);
                }
                5 if pick % 2 == 0 => receivers.push((sender.subscribe(), log.len())),
                5 if !receivers.is_empty() => {
                    drop(receivers.swap_remove(pick % receivers.len()));
                }
                _ => {}
            }
        }
    });
}
