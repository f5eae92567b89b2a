//! From a message to a handler that takes several of its kind.
//!
//! The arm of the first message takes those behind it out of the mailbox, for as long as they are of
//! its kind, and calls the handler once.

use proc_macro2::{Literal, TokenStream};
use quote::quote_spanned;
use syn::Ident;

use super::dispatch::{call, name_of, reply, show, unwrapped};
use crate::hygiene;
use crate::model::{Batching, Message};

/// What is done with a message whose fields are bound by `pattern`.
pub(super) fn handled(
    message: &Message,
    batch: Batching,
    arguments: &[Ident],
    pattern: &TokenStream,
    any: &TokenStream,
) -> TokenStream {
    let max = Literal::usize_suffixed(batch.max);
    let answer = &message.answer;
    let reply = reply(message);
    let mut parts: Vec<TokenStream> = message
        .arguments
        .iter()
        .zip(arguments)
        .map(|(argument, field)| unwrapped(argument.is_proved, field))
        .collect();
    if answer.is_deferred {
        parts.push(reply.clone());
    }
    let item = if batch.is_tuple {
        quote_spanned!(hygiene::generated()=> (#(#parts,)*))
    } else {
        parts.pop().unwrap_or_default()
    };
    let (item, gather) = if answer.is_deferred {
        (item, "gather")
    } else {
        let pair = quote_spanned!(hygiene::generated()=> (#item, #reply));
        (pair, "gather_answered")
    };
    let gather = Ident::new(gather, hygiene::generated());
    let gathered = quote_spanned! {hygiene::generated()=>
        __rt::#gather(
            #item,
            ctx,
            #max,
            |msg| match msg { #any => true, _ => false },
            |msg| match msg {
                #pattern => __rt::core::option::Option::Some(#item),
                _ => __rt::core::option::Option::None,
            },
        )
    };
    let call = call(message, arguments);
    let awaited = message
        .is_async
        .then(|| quote_spanned!(hygiene::generated()=> .await));
    if answer.is_deferred {
        return quote_spanned!(hygiene::generated()=> let batch = #gathered; #call #awaited;);
    }
    let (function, values) = if answer.is_flat {
        let name = name_of(message);
        let show = show();
        let values = quote_spanned!(hygiene::generated()=> #show, replies, answer, ctx, #name);
        ("answer_all_flat", values)
    } else {
        let values = quote_spanned!(hygiene::generated()=> replies, answer);
        ("answer_all", values)
    };
    let place = answer.place;
    let answered = place.call(place.runtime_path(&[function]), values);
    quote_spanned! {hygiene::generated()=>
        let (batch, replies) = #gathered;
        let answer = #call #awaited;
        #answered;
    }
}
