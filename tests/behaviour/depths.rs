//! What goes from actor to actor goes through any number of them: the stack of a shard is not what ends it.

use std::sync::{Arc, Mutex, mpsc};

use greenroom::prelude::*;
use greenroom::{ExitReason, Restart};
use greenroom_tests::{bounded_wait, counts, hear, on_shards};

const MANY: u32 = 10_000;

/// The innermost of a family, when it is known.
type Youngest = Arc<Mutex<Option<Addr<Doll>>>>;

/// Has a doll inside, which has one inside.
struct Doll {
    inside: u32,
    youngest: Youngest,
    gone: mpsc::Sender<u32>,
}

#[actor]
impl Doll {
    #[on(started)]
    fn started(&mut self, ctx: &mut Ctx<Self>) {
        if let Some(inside) = self.inside.checked_sub(1) {
            let (youngest, gone) = (self.youngest.clone(), self.gone.clone());
            ctx.adopt(Self {
                inside,
                youngest,
                gone,
            });
        } else {
            *self.youngest.lock().unwrap() = Some(ctx.addr());
        }
    }

    pub(crate) fn panic(&self) {
        panic!("chipped");
    }
}

impl Drop for Doll {
    fn drop(&mut self) {
        self.gone.send(self.inside).ok();
    }
}

fn family(system: &System) -> (Addr<Doll>, mpsc::Receiver<u32>) {
    let youngest = Youngest::default();
    let (gone, ends) = mpsc::channel();
    let known = youngest.clone();
    let eldest = system.spawn_on(0, move || Doll {
        inside: MANY,
        youngest: known,
        gone,
    });
    let eldest = system.block_on(eldest).unwrap();
    bounded_wait(|| youngest.lock().unwrap().is_some());
    (eldest, ends)
}

#[test]
fn a_family_may_be_deeper_than_the_stack_and_ends_from_the_youngest_on() {
    on_shards(&[1, 2], |system| {
        for how in [Addr::stop, Addr::kill] {
            let (eldest, ends) = family(system);
            how(eldest);
            for inside in 0..=MANY {
                assert_eq!(hear(&ends), inside);
            }
            system.block_on(Addr::stopped(eldest));
        }
        let (eldest, ends) = family(system);
        system.block_on(eldest.panic().into_future()).unwrap_err();
        for inside in 0..=MANY {
            assert_eq!(hear(&ends), inside);
        }
    });
}

/// Linked with the one before it.
struct Ring {
    before: Option<Addr<Ring>>,
}

#[actor]
impl Ring {
    #[on(started)]
    fn started(&mut self, ctx: &mut Ctx<Self>) {
        if let Some(before) = self.before {
            ctx.link(before);
        }
    }

    pub(crate) fn panic(&self) {
        panic!("a weak link");
    }
}

#[test]
fn a_failure_goes_through_more_links_than_the_stack_holds_and_is_told_with_its_cause() {
    on_shards(&[1, 2], |system| {
        let (first, last) = system.block_on(async {
            let first = system.spawn_on(0, || Ring { before: None }).await.unwrap();
            let mut last = first;
            for _ in 0..MANY {
                let before = Some(last);
                last = system.spawn_on(0, move || Ring { before }).await.unwrap();
            }
            (first, last)
        });
        let down = Addr::watch(last);
        system.block_on(first.panic().into_future()).unwrap_err();
        let reason = system.block_on(down).reason;
        assert!(matches!(reason, ExitReason::Linked(_)), "{reason}");
        assert_eq!(reason.panic().unwrap().text(), "a weak link");
        assert!(reason.to_string().len() < 5_000, "{reason}");
    });
}

/// Fails with its child.
struct Storey {
    above: u32,
    top: Arc<Mutex<Option<Addr<Storey>>>>,
}

#[actor]
impl Storey {
    #[on(started)]
    async fn started(&mut self, ctx: &mut Ctx<Self>) -> Result<(), greenroom::SpawnError> {
        let top = self.top.clone();
        if let Some(above) = self.above.checked_sub(1) {
            let build = move || Self {
                above,
                top: top.clone(),
            };
            ctx.spawn_child(build)
                .restart(Restart::OnFailure)
                .intensity(0, std::time::Duration::from_secs(60))
                .await?;
        } else {
            *top.lock().unwrap() = Some(ctx.addr());
        }
        Ok(())
    }

    pub(crate) fn fail(&self, ctx: &mut Ctx<Self>) {
        ctx.fail("a crack");
    }
}

#[test]
fn a_failure_that_goes_up_a_tall_family_is_told_with_its_cause() {
    on_shards(&[1, 2], |system| {
        let top = Arc::default();
        let known = Arc::clone(&top);
        let ground = system.spawn_on(0, move || Storey {
            above: 1_000,
            top: known,
        });
        let ground = system.block_on(ground).unwrap();
        let down = Addr::watch(ground);
        let top = top.lock().unwrap().expect("it is built from the ground up");
        system.block_on(top.fail().tell()).unwrap();
        let reason = system.block_on(down).reason;
        assert!(matches!(reason, ExitReason::ChildFailed(_)), "{reason}");
        assert_eq!(reason.error().unwrap().to_string(), "a crack");
        assert!(reason.to_string().len() < 5_000, "{reason}");
        bounded_wait(|| counts(system).actors == 0);
    });
}

/// Kills another one when it goes.
struct Avenger(Option<Addr<Avenger>>);

#[actor]
impl Avenger {
    pub(crate) fn nothing(&self) {}
}

impl Drop for Avenger {
    fn drop(&mut self) {
        if let Some(next) = self.0 {
            Addr::kill(next);
        }
    }
}

#[test]
fn destructors_that_kill_go_through_more_actors_than_the_stack_holds() {
    on_shards(&[1, 2], |system| {
        let mut next = None;
        for _ in 0..MANY {
            let spawned = system.spawn_on(0, move || Avenger(next));
            next = Some(system.block_on(spawned).unwrap());
        }
        Addr::kill(next.unwrap());
        bounded_wait(|| counts(system).actors == 0);
    });
}
