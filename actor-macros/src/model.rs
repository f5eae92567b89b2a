//! The typed view of an actor block.
//!
//! A [`Method`] is a view of what the user wrote, before the rules of `check.rs`; a [`Message`] or
//! a [`Hook`] is what is left to expand after them.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, format_ident, quote_spanned};
use syn::ext::IdentExt;
use syn::{
    Attribute, FnArg, Generics, Ident, Lifetime, Pat, PatType, Receiver, ReceiverKind, ReturnType,
    Signature, Type, Visibility,
};

use crate::args::Options;
use crate::every::Period;
use crate::hygiene::{self, Place};
use crate::messages;
use crate::parse::{RawFn, RawItem};
use crate::roles::{self, Event, Flatten, MessageOptions};
use crate::types::{self, NameSelf};

/// Everything that the expansion needs.
pub(crate) struct ActorDef {
    pub(crate) options: Options,
    /// `cfg` attributes of the whole block.
    pub(crate) cfg: TokenStream,
    /// What allows the lints that the block or one of its messages allows.
    pub(crate) lints: TokenStream,
    pub(crate) generics: Generics,
    pub(crate) ty: Type,
    /// The last segment of the type, without `r#`.
    pub(crate) name: Ident,
    pub(crate) messages: Vec<Message>,
    pub(crate) hooks: Vec<Hook>,
    pub(crate) timers: Vec<Timer>,
    /// Messages that broke a rule, but whose calls can still be typed.
    pub(crate) refused: Vec<RefusedMessage>,
    /// Whether a message has a `#[key]`, also one that broke another rule.
    pub(crate) has_keys: bool,
}

impl ActorDef {
    /// The messages of a trait of the calls.
    ///
    /// A trait object knows no shard, so what only one shard may send is not among them, and neither is
    /// what the actor alone sends to itself.
    pub(crate) fn calls_of_trait(&self) -> impl Iterator<Item = &Message> {
        let is_own = |message: &Message| {
            let is_private = matches!(message.vis, Visibility::Inherited);
            is_private && self.timers.iter().any(|timer| timer.name == message.name)
        };
        let shared = self.messages.iter().filter(|message| !message.is_local);
        shared.filter(move |message| !is_own(message))
    }
}

/// A method that callers reach through the address.
pub(crate) struct Message {
    pub(crate) attrs: Vec<Attribute>,
    pub(crate) vis: Visibility,
    /// Where its `fn` stands.
    pub(crate) keyword: Span,
    pub(crate) name: Ident,
    pub(crate) is_async: bool,
    pub(crate) is_local: bool,
    /// Whether the arguments travel in a box.
    pub(crate) is_boxed: bool,
    /// Whether the handler may run beside others of its kind.
    pub(crate) is_concurrent: bool,
    pub(crate) is_urgent: bool,
    /// If the handler takes several at once: how.
    pub(crate) batch: Option<Batching>,
    /// What the caller passes.
    pub(crate) arguments: Vec<Argument>,
    /// What the handler takes, in its order.
    pub(crate) slots: Vec<Slot>,
    pub(crate) answer: Answer,
}

impl Message {
    /// The argument that decides on the instance, and its position.
    pub(crate) fn key(&self) -> Option<(usize, &Argument)> {
        let mut arguments = self.arguments.iter().enumerate();
        arguments.find(|(_, argument)| argument.is_key)
    }
}

/// How a handler takes several messages at once.
#[derive(Clone, Copy)]
pub(crate) struct Batching {
    /// At most so many.
    pub(crate) max: usize,
    /// Whether an item of the batch is a tuple, with a part for each argument.
    pub(crate) is_tuple: bool,
}

/// One value in a message.
pub(crate) struct Argument {
    /// Its name in the generated call.
    pub(crate) name: Ident,
    pub(crate) ty: Type,
    pub(crate) place: Place,
    /// Whether it travels in the proof that it may cross shards.
    pub(crate) is_proved: bool,
    /// Whether the call takes whatever can be converted to it.
    pub(crate) is_into: bool,
    /// Whether it decides on the instance of a sharded actor.
    pub(crate) is_key: bool,
}

/// One parameter of a handler.
pub(crate) enum Slot {
    /// The next argument.
    Argument,
    Context(Place),
    /// The handle of a deferred reply.
    Reply(Place),
    /// What a hook is told.
    News(Place),
    /// All arguments, and the replies if they are deferred, of several messages.
    Batch(Place),
}

/// What the caller gets back.
pub(crate) struct Answer {
    pub(crate) ty: TokenStream,
    pub(crate) place: Place,
    /// Whether it travels in the proof that it may cross shards.
    pub(crate) is_proved: bool,
    /// Whether the handler's `Result` becomes the caller's.
    pub(crate) is_flat: bool,
    /// Whether the handler answers through a `Reply`, perhaps later.
    pub(crate) is_deferred: bool,
}

/// A method that is called at a moment in the actor's life.
pub(crate) struct Hook {
    pub(crate) event: Event,
    pub(crate) attrs: Vec<Attribute>,
    /// Where its `fn` stands.
    pub(crate) keyword: Span,
    pub(crate) name: Ident,
    pub(crate) is_async: bool,
    /// What it takes, in its order: the context, and what happened.
    pub(crate) slots: Vec<Slot>,
    /// Where an unsuitable return type is reported.
    pub(crate) returns: Place,
}

/// A message that the actor sends to itself again and again.
pub(crate) struct Timer {
    pub(crate) attrs: Vec<Attribute>,
    pub(crate) name: Ident,
    pub(crate) period: Period,
}

/// A message that broke a rule, seen from its callers.
pub(crate) struct RefusedMessage {
    pub(crate) attrs: Vec<Attribute>,
    pub(crate) vis: Visibility,
    pub(crate) name: Ident,
    pub(crate) arguments: usize,
    /// If the mistake is not in the reply: what the caller gets back. Otherwise the mistake, if it is ours to report.
    pub(crate) answer: Result<Answer, Option<syn::Error>>,
}

/// A method as the user wrote it.
pub(crate) struct Method<'a> {
    pub(crate) vis: &'a Visibility,
    pub(crate) sig: &'a Signature,
    pub(crate) attrs: Vec<&'a Attribute>,
    pub(crate) receiver: Option<&'a Receiver>,
    pub(crate) params: Vec<Param<'a>>,
    /// What a text about this method ends with.
    pub(crate) hint: &'static str,
    pub(crate) options: MessageOptions,
}

/// A parameter as the user wrote it.
pub(crate) struct Param<'a> {
    pub(crate) typed: &'a PatType,
    pub(crate) kind: ParamKind<'a>,
    /// The marker `#[into]`.
    pub(crate) into: Option<&'a Attribute>,
    /// The marker `#[key]`.
    pub(crate) key: Option<&'a Attribute>,
}

/// What a parameter is for, by the spelling of its type.
#[derive(Clone, Copy)]
pub(crate) enum ParamKind<'a> {
    Argument,
    Context,
    /// `Reply<T>`. Another number of arguments is some other `Reply`, an argument like any.
    Reply(&'a Type),
    /// `Batch<T>`, in a message that is one.
    Batch(&'a Type),
}

impl<'a> Method<'a> {
    /// A method that is a message only because it is visible, if `options` is `None`.
    pub(crate) fn new(item: &'a RawItem, raw: &'a RawFn, options: Option<MessageOptions>) -> Self {
        let kept = item.attrs.iter().filter(|attr| !attr.taken);
        let mut params = Param::all(raw);
        if options.is_some_and(|options| options.batch.is_some()) {
            params.iter_mut().for_each(Param::look_for_batch);
        }
        Self {
            vis: &raw.vis,
            sig: &raw.sig,
            attrs: kept.map(|raw| &raw.attr).collect(),
            receiver: raw.sig.receiver(),
            params,
            hint: match options {
                Some(_) => "",
                None => messages::HINT_NOT_A_MESSAGE,
            },
            options: options.unwrap_or_default(),
        }
    }

    /// The name as it is read, without `r#`.
    pub(crate) fn name(&self) -> String {
        self.sig.ident.unraw().to_string()
    }

    /// Whether the receiver is `&self` or `&mut self`, however it is spelled.
    pub(crate) fn borrows_self(&self) -> bool {
        let Some(receiver) = self.receiver else {
            return false;
        };
        match &receiver.kind {
            ReceiverKind::Reference(_, lifetime, _) => lifetime
                .as_ref()
                .is_none_or(|lifetime| lifetime.ident != "static"),
            ReceiverKind::Typed(_, ty) => match types::bare(ty) {
                Type::Reference(reference) => types::is_self(&reference.elem),
                _ => false,
            },
            _ => false,
        }
    }

    /// Whether the receiver is a `&mut`, however it is spelled.
    pub(crate) fn borrows_self_mutably(&self) -> bool {
        self.receiver.is_some_and(|receiver| match &receiver.kind {
            ReceiverKind::Reference(_, _, mutability) => mutability.is_some(),
            ReceiverKind::Typed(_, ty) => match types::bare(ty) {
                Type::Reference(reference) => reference.mutability.is_some(),
                _ => false,
            },
            _ => false,
        })
    }

    /// The type written after the arrow, unless it is `()`.
    pub(crate) fn output(&self) -> Option<&'a Type> {
        match &self.sig.output {
            ReturnType::Type(_, ty) if !types::is_unit(ty) => Some(ty),
            _ => None,
        }
    }

    /// The first deferred reply.
    pub(crate) fn deferred(&self) -> Option<&'a Type> {
        self.params.iter().find_map(|param| match param.kind {
            ParamKind::Reply(ty) => Some(ty),
            ParamKind::Batch(item) => BatchItem::of(item).reply.map(|(_, ty)| ty),
            _ => None,
        })
    }

    /// The markers `#[key]`.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &'a Attribute> {
        self.params.iter().filter_map(|param| param.key)
    }

    /// Whether a lifetime is one of the method's own. Another one is unknown, or belongs to the block, and is a mistake there.
    pub(crate) fn knows(&self, lifetime: &Lifetime) -> bool {
        let mut declared = self.sig.generics.lifetimes();
        lifetime.ident == "_" || declared.any(|parameter| parameter.lifetime == *lifetime)
    }

    fn owned_attrs(&self) -> Vec<Attribute> {
        self.attrs.iter().map(|attr| (*attr).clone()).collect()
    }

    /// Whether a value of this type travels in the proof that it may cross shards.
    fn proves(&self, ty: &Type) -> bool {
        !self.options.is_local && !types::is_spelled_crossing(ty)
    }

    /// What the caller gets back.
    pub(crate) fn answer(&self, actor: &Type) -> Answer {
        let deferred = self.deferred();
        let written = deferred.or_else(|| self.output());
        let is_flat = match self.options.flatten {
            Flatten::Never => false,
            Flatten::Always => true,
            Flatten::BySpelling => written.is_some_and(|ty| types::is_spelled(ty, "Result")),
        };
        Answer {
            ty: match written {
                Some(ty) => NameSelf { actor }.in_type(ty).to_token_stream(),
                None => quote_spanned!(hygiene::generated()=> ()),
            },
            place: written.map_or_else(Place::nowhere, Place::of),
            is_proved: written.is_some_and(|ty| self.proves(ty)),
            is_flat,
            is_deferred: deferred.is_some(),
        }
    }

    /// What is left of a message that obeys every rule.
    pub(crate) fn to_message(&self, actor: &Type) -> Message {
        let mut arguments = Vec::new();
        let mut slots = Vec::new();
        let mut is_tuple = false;
        for param in &self.params {
            let place = Place::of(&param.typed.ty);
            slots.push(match param.kind {
                ParamKind::Argument => {
                    arguments.push(Argument {
                        name: param.call_name(arguments.len()),
                        ty: NameSelf { actor }.in_type(&param.typed.ty),
                        place,
                        is_proved: self.proves(&param.typed.ty),
                        is_into: param.into.is_some(),
                        is_key: param.key.is_some(),
                    });
                    Slot::Argument
                }
                ParamKind::Context => Slot::Context(place),
                ParamKind::Reply(_) => Slot::Reply(place),
                ParamKind::Batch(item) => {
                    let item = BatchItem::of(item);
                    is_tuple = item.is_tuple;
                    let is_only = item.arguments.len() == 1;
                    arguments = item
                        .arguments
                        .into_iter()
                        .enumerate()
                        .map(|(position, ty)| Argument {
                            name: param.item_name(is_only, position),
                            ty: NameSelf { actor }.in_type(ty),
                            place: Place::of(ty),
                            is_proved: self.proves(ty),
                            is_into: false,
                            is_key: false,
                        })
                        .collect();
                    Slot::Batch(place)
                }
            });
        }
        Message {
            attrs: self.owned_attrs(),
            vis: self.vis.clone(),
            keyword: self.sig.fn_token.span,
            name: self.sig.ident.clone(),
            is_async: self.sig.asyncness.is_some(),
            is_local: self.options.is_local,
            is_boxed: self.options.is_boxed,
            is_concurrent: self.options.is_concurrent,
            is_urgent: self.options.is_urgent,
            batch: self.options.batch.map(|max| Batching { max, is_tuple }),
            arguments,
            slots,
            answer: self.answer(actor),
        }
    }

    /// What is left of a message whose name is in order.
    pub(crate) fn to_refused(&self, answer: Result<Answer, Option<syn::Error>>) -> RefusedMessage {
        let arguments = self.params.iter().map(|param| match param.kind {
            ParamKind::Argument => 1,
            ParamKind::Batch(item) => BatchItem::of(item).arguments.len(),
            ParamKind::Context | ParamKind::Reply(_) => 0,
        });
        RefusedMessage {
            attrs: self.owned_attrs(),
            vis: self.vis.clone(),
            name: self.sig.ident.clone(),
            arguments: arguments.sum(),
            answer,
        }
    }

    /// The timer of a message that obeys every rule.
    pub(crate) fn to_timer(&self, period: Period) -> Timer {
        Timer {
            attrs: self.owned_attrs(),
            name: self.sig.ident.clone(),
            period,
        }
    }

    /// What is left of a hook that obeys every rule.
    pub(crate) fn to_hook(&self, event: Event) -> Hook {
        Hook {
            event,
            attrs: self.owned_attrs(),
            keyword: self.sig.fn_token.span,
            name: self.sig.ident.clone(),
            is_async: self.sig.asyncness.is_some(),
            slots: self
                .params
                .iter()
                .map(|param| match param.kind {
                    ParamKind::Context => Slot::Context(Place::of(&param.typed.ty)),
                    _ => Slot::News(Place::of(&param.typed.ty)),
                })
                .collect(),
            returns: self.output().map_or_else(Place::nowhere, Place::of),
        }
    }
}

impl<'a> Param<'a> {
    /// Every parameter but the receiver.
    fn all(raw: &'a RawFn) -> Vec<Self> {
        let inputs = raw.sig.inputs.iter().enumerate();
        let param = |(position, input): (usize, &'a FnArg)| {
            let mut param = Self::new(input)?;
            for (_, marker) in raw.marked.iter().filter(|(marked, _)| *marked == position) {
                match roles::last_name(marker.path()).as_str() {
                    "key" => param.key = Some(marker),
                    _ => param.into = Some(marker),
                }
            }
            Some(param)
        };
        inputs.filter_map(param).collect()
    }

    /// `None` for the receiver.
    fn new(input: &'a FnArg) -> Option<Self> {
        let FnArg::Typed(typed) = input else {
            return None;
        };
        let kind = if types::is_context(&typed.ty) {
            ParamKind::Context
        } else if let Some(segment) = types::last_segment(&typed.ty)
            && segment.ident == "Reply"
            && let Some(answer) = types::only_argument(segment)
        {
            ParamKind::Reply(answer)
        } else {
            ParamKind::Argument
        };
        Some(Self {
            typed,
            kind,
            into: None,
            key: None,
        })
    }

    /// `Batch<T>` is what its handler takes.
    fn look_for_batch(&mut self) {
        if let ParamKind::Argument = self.kind
            && let Some(segment) = types::last_segment(&self.typed.ty)
            && segment.ident == "Batch"
            && let Some(item) = types::only_argument(segment)
        {
            self.kind = ParamKind::Batch(item);
        }
    }

    /// The name of an argument in a batch.
    fn item_name(&self, is_only: bool, position: usize) -> Ident {
        if is_only {
            self.call_name(position)
        } else {
            format_ident!("arg{position}", span = hygiene::generated())
        }
    }

    /// The parameter's own name, or one by position for a pattern.
    fn call_name(&self, position: usize) -> Ident {
        match &*self.typed.pat {
            Pat::Ident(pat) => pat.ident.clone(),
            _ => format_ident!("arg{position}", span = hygiene::generated()),
        }
    }
}

/// What a batch has for each message: `T`, `(T, U)`, or with a reply `(T, U, Reply<R>)`.
pub(crate) struct BatchItem<'a> {
    pub(crate) arguments: Vec<&'a Type>,
    /// The type of the reply, in its `Reply`.
    pub(crate) reply: Option<(&'a Type, &'a Type)>,
    pub(crate) is_tuple: bool,
}

impl<'a> BatchItem<'a> {
    pub(crate) fn of(item: &'a Type) -> Self {
        let bare = types::bare(item);
        let (mut arguments, is_tuple): (Vec<&Type>, bool) = match bare {
            Type::Tuple(tuple) => (tuple.elems.iter().collect(), true),
            _ => (vec![item], false),
        };
        let reply = arguments.last().and_then(|last| {
            let segment = types::last_segment(last).filter(|segment| segment.ident == "Reply")?;
            Some((*last, types::only_argument(segment)?))
        });
        if reply.is_some() {
            arguments.pop();
        }
        Self {
            arguments,
            reply,
            is_tuple,
        }
    }
}
