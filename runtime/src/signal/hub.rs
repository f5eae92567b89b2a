//! The one owner of signals in a process: a thread, and who listens.
//!
//! The handler that the kernel calls, its pipe and the blocking read behind it are the `signal-hook` library's. What is
//! left to do here is to tell each listener, and to act in place of the kernel where there is none.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use futures_channel::mpsc;
use signal_hook::consts::FORBIDDEN;
use signal_hook::iterator::{Handle, Signals};
use signal_hook::low_level::emulate_default_handler;

use super::SignalKind;
use crate::process::reaper;
use crate::shard::context;
use crate::sys;
use crate::task::contain;

/// The highest number of a signal on Linux.
const SIGNAL_MAX: i32 = 64;

/// `None` until the first listener.
static HUB: Mutex<Option<Hub>> = Mutex::new(None);

struct Hub {
    /// Adds signals to those the thread reads.
    registrar: Handle,
    signals: BTreeMap<SignalKind, Listeners>,
}

struct Listeners {
    senders: Vec<mpsc::Sender<SignalKind>>,
    /// Whether the signal had its usual effect before the first of them came.
    stands_for_default: bool,
}

/// Adds a listener; the first one starts the hub.
pub(super) fn listen(kind: SignalKind, sender: mpsc::Sender<SignalKind>) -> io::Result<()> {
    add(kind, Some(sender))
}

/// Sees to it that the [`reaper`] hears of the end of children from now on.
pub(crate) fn tell_reaper() -> io::Result<()> {
    add(SignalKind::CHILD, None)
}

fn add(kind: SignalKind, sender: Option<mpsc::Sender<SignalKind>>) -> io::Result<()> {
    check(kind)?;
    let mut hub = lock();
    let hub = match &mut *hub {
        Some(hub) => hub,
        none => none.insert(start()?),
    };
    if !hub.signals.contains_key(&kind) {
        let stands_for_default = sys::has_default_action(kind.as_raw())?;
        hub.registrar.add_signal(kind.as_raw())?;
        let listeners = Listeners {
            senders: Vec::new(),
            stands_for_default,
        };
        hub.signals.insert(kind, listeners);
    }
    if let Some(listeners) = hub.signals.get_mut(&kind) {
        // Whoever makes a new listener for each wait must not make the list grow.
        listeners.senders.retain(|known| !known.is_closed());
        listeners.senders.extend(sender);
    }
    Ok(())
}

fn check(kind: SignalKind) -> io::Result<()> {
    let refusal = if FORBIDDEN.contains(&kind.as_raw()) || kind.as_raw() == libc::SIGBUS {
        format!("{kind} cannot be listened for: no handler of it could return to the program")
    } else if !(1..=SIGNAL_MAX).contains(&kind.as_raw()) {
        format!("{kind} does not exist: signals have numbers from 1 to {SIGNAL_MAX}")
    } else {
        return Ok(());
    };
    Err(io::Error::new(io::ErrorKind::InvalidInput, refusal))
}

fn start() -> io::Result<Hub> {
    let nothing: [i32; 0] = [];
    let mut signals = Signals::new(nothing)?;
    let registrar = signals.handle();
    // A thread inherits the CPUs of its maker, and a shard has just one.
    let cpus = context::with(|shard| shard.team().blocking().cpus().to_vec());
    thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || {
            let _still_pinned = cpus.map(|cpus| sys::allow(&cpus));
            for signal in signals.forever() {
                let kind = SignalKind::from_raw(signal);
                if kind == SignalKind::CHILD {
                    reaper::sweep();
                }
                contain(|| arrived(kind));
            }
        })?;
    Ok(Hub {
        registrar,
        signals: BTreeMap::new(),
    })
}

/// Tells everyone who listens.
fn arrived(kind: SignalKind) {
    // The senders leave the hub meanwhile, because a waker may be anyone's code and could ask for a new listener. Nobody
    // else takes them out: this is the hub's one thread.
    let taken = with_listeners(kind, |listeners| {
        listeners.senders.retain(|sender| !sender.is_closed());
        let in_place = listeners.senders.is_empty() && listeners.stands_for_default;
        (std::mem::take(&mut listeners.senders), in_place)
    });
    let Some((mut senders, in_place_of_kernel)) = taken else {
        return;
    };
    if in_place_of_kernel {
        // A signal it does not know is one without a usual effect.
        drop(emulate_default_handler(kind.as_raw()));
    }
    for sender in &mut senders {
        // One that is full has an arrival that nobody looked at yet: this is the same one. One that is closed goes at
        // the next arrival.
        contain(|| drop(sender.try_send(kind)));
    }
    with_listeners(kind, |listeners| listeners.senders.append(&mut senders));
}

fn with_listeners<R>(kind: SignalKind, act: impl FnOnce(&mut Listeners) -> R) -> Option<R> {
    lock().as_mut()?.signals.get_mut(&kind).map(act)
}

fn lock() -> MutexGuard<'static, Option<Hub>> {
    // Nothing under the lock is left half done by a panic.
    HUB.lock().unwrap_or_else(PoisonError::into_inner)
}
