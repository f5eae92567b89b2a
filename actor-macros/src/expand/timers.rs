//! From the timers of an actor to the calls that begin them.

use proc_macro2::TokenStream;
use quote::quote_spanned;

use crate::attrs;
use crate::hygiene::{self, Place};
use crate::model::{ActorDef, Timer};

pub(super) fn expand(actor: &ActorDef) -> Option<TokenStream> {
    if actor.timers.is_empty() {
        return None;
    }
    let timers = actor.timers.iter().map(timer);
    Some(quote_spanned! {hygiene::generated()=>
        const HAS_TIMERS: __rt::core::primitive::bool = true;
        fn begin_timers(ctx: &mut __rt::Ctx<Self>) {
            #(#timers)*
        }
    })
}

fn timer(timer: &Timer) -> TokenStream {
    let cfg = attrs::for_every_part(&timer.attrs);
    let Timer { name, period, .. } = timer;
    let name = super::silent(name);
    let length = &period.length;
    let missed = period.missed.variant();
    // A period of another type is reported where it was written.
    let place = Place::of(length);
    let every = place.call(
        place.runtime_path(&["every"]),
        quote_spanned!(hygiene::generated()=> ctx, #length, __rt::MissedTicks::#missed),
    );
    quote_spanned! {hygiene::generated()=>
        #cfg
        {
            let _ = #every.#name();
        }
    }
}
