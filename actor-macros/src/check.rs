//! The rules of an actor block, one function each.
//!
//! Every rule looks at the whole method and reports all it finds. Rules that the compiler knows
//! better (is a type `Send`, does a path exist) are not here.

use syn::ext::IdentExt;
use syn::punctuated::Punctuated;
use syn::{GenericParam, Generics, ReceiverKind, Safety, Token, Type};

use crate::args::Api;
use crate::errors::Errors;
use crate::model::{ActorDef, BatchItem, Hook, Method, Param, ParamKind};
use crate::parse::RawItem;
use crate::roles::{self, Event, Flatten};
use crate::types::{self, Obstacle};
use crate::{attrs, hygiene, messages};

// Rules for the block. When one of them is broken there is nothing to expand.

/// An actor lives as long as it likes, so its type has no lifetime parameters.
pub(crate) fn no_lifetime_parameters(generics: &Generics, ty: &Type, errors: &mut Errors) {
    for parameter in generics.lifetimes() {
        errors.on(&parameter.lifetime, messages::LIFETIME_PARAMETER);
    }
    for obstacle in types::obstacles(ty) {
        if let Obstacle::Lifetime(lifetime) = obstacle
            && lifetime.ident == "_"
        {
            errors.on(lifetime, messages::LIFETIME_PARAMETER);
        }
    }
}

/// Generated code has parameters beside those of the block.
pub(crate) fn parameters_have_free_names(generics: &Generics, errors: &mut Errors) {
    let types = generics.type_params().map(|parameter| &parameter.ident);
    let constants = generics.const_params().map(|parameter| &parameter.ident);
    for name in types.chain(constants) {
        if name.unraw().to_string().starts_with("__") {
            errors.on(name, messages::DUNDER_NAME);
        }
    }
}

/// The generated types are named after the actor.
pub(crate) fn has_a_name(ty: &Type, errors: &mut Errors) {
    if types::is_primitive(ty) {
        errors.on(ty, messages::PRIMITIVE_TYPE);
    } else if types::last_segment(ty).is_none() || types::is_self(ty) {
        errors.on(ty, messages::UNNAMED_TYPE);
    }
}

/// Whether no block of this type compiles, so that what is said about it would be said twice.
pub(crate) fn is_refused_by_the_compiler(ty: &Type) -> bool {
    types::is_self(ty)
        || types::is_primitive(ty)
        || !matches!(
            types::bare(ty),
            Type::Path(_) | Type::TraitObject(_) | Type::Macro(_) | Type::Verbatim(_)
        )
}

/// An actor that nobody can reach and that does nothing on its own is a forgotten `pub`.
///
/// Or a misspelt marker, which the compiler reports.
pub(crate) fn does_something(actor: &ActorDef, items: &[RawItem], errors: &mut Errors) {
    if items.iter().any(roles::has_misspelt_marker) {
        return;
    }
    if actor.messages.is_empty() && actor.hooks.is_empty() && errors.count() == 0 {
        errors.on(&actor.ty, messages::NO_MESSAGES);
    }
}

/// A bound without anything to bound is a forgotten marker.
pub(crate) fn concurrent_is_used(actor: &ActorDef, errors: &mut Errors) {
    let is_used = actor.messages.iter().any(|message| message.is_concurrent);
    if let (Some(bound), false, 0) = (&actor.options.concurrent, is_used, errors.count()) {
        errors.on(bound, messages::CONCURRENT_UNUSED);
    }
}

/// The trait stands beside the type.
pub(crate) fn trait_has_a_name_of_its_own(actor: &mut ActorDef, errors: &mut Errors) {
    let clash = |api: &mut Api| api.name.unraw() == actor.name;
    if let Some(api) = actor.options.api.take_if(clash) {
        errors.on(api.name, messages::TRAIT_NAMED_LIKE_THE_ACTOR);
    }
}

/// A trait without methods is no use to anybody.
pub(crate) fn trait_has_calls(actor: &ActorDef, errors: &mut Errors) {
    let has_calls = actor.calls_of_trait().next().is_some();
    if let (Some(api), false, 0) = (&actor.options.api, has_calls, errors.count()) {
        errors.on(&api.name, messages::TRAIT_WITHOUT_CALLS);
    }
}

/// A trait is implemented with messages that are there.
pub(crate) fn implements_what_it_has(actor: &ActorDef, errors: &mut Errors) {
    let implements = actor.options.implements.as_ref();
    let Some(listed) = implements.and_then(|implements| implements.methods.as_ref()) else {
        return;
    };
    let sound = actor.calls_of_trait();
    let refused = actor.refused.iter().map(|message| &message.name);
    let names: Vec<String> = sound
        .map(|message| &message.name)
        .chain(refused)
        .map(|name| name.unraw().to_string())
        .collect();
    let known: Vec<&str> = names.iter().map(String::as_str).collect();
    for name in listed {
        let found = name.unraw().to_string();
        if !names.contains(&found) {
            let nearest = hygiene::nearest(&found, &known);
            errors.on(name, messages::unknown_trait_message(&found, nearest));
        }
    }
}

// Rules for messages.

/// The rule without which there cannot be a call of the message.
pub(crate) fn message_name(method: &Method<'_>, errors: &mut Errors) {
    name_is_free(method, errors);
}

/// The rules without which nobody knows what the call returns.
pub(crate) fn message_reply(method: &Method<'_>, errors: &mut Errors) {
    is_not_generic(method, errors);
    reply_is_owned(method, errors);
    reply_is_written_once(method, errors);
}

/// All other rules for messages.
pub(crate) fn message_handler(method: &Method<'_>, errors: &mut Errors) {
    receiver_is_a_borrow(method, errors);
    has_no_bounds(method, errors);
    is_a_plain_fn(method, errors);
    shares_the_actor(method, errors);
    has_something_to_box(method, errors);
    marks_arguments_only(method, errors);
    has_one_key(method, errors);
    context_at_most_once(method, errors);
    takes_one_batch(method, errors);
    for param in &method.params {
        no_cfg_on_parameter(param, errors);
        match param.kind {
            // It is no batch, which was reported.
            ParamKind::Argument if method.options.batch.is_some() => {}
            ParamKind::Argument => argument_is_owned(method, &param.typed.ty, errors),
            ParamKind::Batch(item) => {
                for argument in BatchItem::of(item).arguments {
                    argument_is_owned(method, argument, errors);
                }
            }
            ParamKind::Context | ParamKind::Reply(_) => {}
        }
    }
}

/// A batch is all that its handler takes, and is handled like any exclusive message.
fn takes_one_batch(method: &Method<'_>, errors: &mut Errors) {
    if method.options.batch.is_none() {
        return;
    }
    if method.options.is_boxed || method.options.is_concurrent {
        errors.on(&method.sig.ident, messages::BATCH_AND_OTHERS);
    }
    let mut is_given = false;
    for param in &method.params {
        match param.kind {
            ParamKind::Context => {}
            ParamKind::Batch(_) if !is_given => is_given = true,
            ParamKind::Reply(_) => errors.on(param.typed, messages::BATCH_REPLY),
            ParamKind::Argument | ParamKind::Batch(_) => {
                is_given = true;
                errors.on(param.typed, messages::BATCH_PARAMETER);
            }
        }
    }
    if !is_given {
        errors.on(&method.sig.ident, messages::BATCH_PARAMETER);
    }
}

fn name_is_free(method: &Method<'_>, errors: &mut Errors) {
    let name = method.name();
    if name.starts_with("__") {
        errors.on(&method.sig.ident, messages::DUNDER_NAME);
    } else if hygiene::is_reserved(&name) {
        let text = messages::reserved_name(&name);
        errors.on(&method.sig.ident, text + method.hint);
    }
}

fn is_not_generic(method: &Method<'_>, errors: &mut Errors) {
    let generics = &method.sig.generics;
    let mut params = Punctuated::<_, Token![,]>::new();
    let is_type_or_const = |param: &&GenericParam| !matches!(param, GenericParam::Lifetime(_));
    params.extend(generics.params.iter().filter(is_type_or_const));
    if !params.is_empty() {
        errors.on(params, messages::GENERIC_MESSAGE.to_owned() + method.hint);
    }
}

/// Every message of the actor's mailbox can be handled, whatever the actor's parameters are.
fn has_no_bounds(method: &Method<'_>, errors: &mut Errors) {
    let bounds = method.sig.generics.where_clause.as_ref();
    if let Some(bounds) = bounds.filter(|bounds| !bounds.predicates.is_empty()) {
        errors.on(bounds, messages::BOUNDS_ON_MESSAGE.to_owned() + method.hint);
    }
}

fn receiver_is_a_borrow(method: &Method<'_>, errors: &mut Errors) {
    if method.borrows_self() {
        return;
    }
    match method.receiver {
        None => {
            let text = messages::message_without_self(&method.name());
            errors.on(&method.sig.ident, text);
        }
        Some(receiver) if matches!(receiver.kind, ReceiverKind::Value) => {
            errors.on(receiver, messages::SELF_BY_VALUE.to_owned() + method.hint);
        }
        Some(receiver) => errors.on(receiver, messages::SELF_TYPED.to_owned() + method.hint),
    }
}

fn is_a_plain_fn(method: &Method<'_>, errors: &mut Errors) {
    let sig = method.sig;
    if let Safety::Unsafe(token) = &sig.safety {
        errors.on(token, messages::UNSAFE_MESSAGE.to_owned() + method.hint);
    }
    if let Some(token) = &sig.constness {
        errors.on(token, messages::CONST_MESSAGE.to_owned() + method.hint);
    }
    if let Some(abi) = &sig.abi {
        errors.on(abi, messages::EXTERN_MESSAGE.to_owned() + method.hint);
    }
}

/// Concurrent handlers run side by side: all of them look at the actor, and none may change it.
fn shares_the_actor(method: &Method<'_>, errors: &mut Errors) {
    if !method.options.is_concurrent || !method.borrows_self() {
        return;
    }
    if let Some(receiver) = method.receiver.filter(|_| method.borrows_self_mutably()) {
        errors.on(receiver, messages::CONCURRENT_MUT);
    }
    if method.sig.asyncness.is_none() {
        errors.on(&method.sig.ident, messages::CONCURRENT_SYNC);
    }
}

fn has_something_to_box(method: &Method<'_>, errors: &mut Errors) {
    let is_argument = |param: &Param<'_>| matches!(param.kind, ParamKind::Argument);
    let is_batch = method.options.batch.is_some();
    if method.options.is_boxed && !is_batch && !method.params.iter().any(is_argument) {
        errors.on(&method.sig.ident, messages::BOXED_WITHOUT_ARGUMENTS);
    }
}

fn marks_arguments_only(method: &Method<'_>, errors: &mut Errors) {
    let is_other = |param: &&Param<'_>| !matches!(param.kind, ParamKind::Argument);
    for param in method.params.iter().filter(is_other) {
        if let Some(marker) = param.into {
            errors.on(marker, messages::marker_not_on_an_argument("into"));
        }
        if let Some(marker) = param.key {
            errors.on(marker, messages::marker_not_on_an_argument("key"));
        }
    }
}

/// A key takes a message to another shard, and there is one place where it goes.
fn has_one_key(method: &Method<'_>, errors: &mut Errors) {
    for (position, marker) in method.keys().enumerate() {
        if method.options.is_local {
            errors.on(marker, messages::KEY_OF_LOCAL);
        } else if position > 0 {
            errors.on(marker, messages::KEY_TWICE);
        }
    }
}

fn context_at_most_once(method: &Method<'_>, errors: &mut Errors) {
    let is_context = |param: &&Param<'_>| matches!(param.kind, ParamKind::Context);
    for param in method.params.iter().filter(is_context).skip(1) {
        errors.on(param.typed, messages::CONTEXT_TWICE);
    }
}

/// The arguments of a call would have to carry the condition.
fn no_cfg_on_parameter(param: &Param<'_>, errors: &mut Errors) {
    for attr in &param.typed.attrs {
        if attrs::has_cfg(&[attr]) {
            errors.on(attr, messages::CFG_ON_PARAMETER);
        }
    }
}

/// A message outlives the call that sends it.
fn argument_is_owned(method: &Method<'_>, ty: &Type, errors: &mut Errors) {
    if types::is_spelled(ty, "Ctx") {
        errors.on(ty, messages::CONTEXT_BY_VALUE);
        return;
    }
    if types::is_unsized(ty) {
        errors.leave_to_the_compiler();
        return;
    }
    if matches!(types::bare(ty), Type::Ptr(_)) && !method.options.is_local {
        errors.on(ty, messages::RAW_POINTER);
        return;
    }
    for obstacle in types::obstacles(ty) {
        match obstacle {
            Obstacle::Reference(reference) => {
                let is_context = types::is_spelled(&reference.elem, "Ctx");
                let mut text = messages::BORROWED_PARAMETER.to_owned();
                if is_context {
                    text += messages::HELP_CONTEXT_IS_MUT;
                } else {
                    text += &messages::help_use_instead(owned_form(&reference.elem));
                    text += method.hint;
                }
                errors.on(reference, text);
            }
            Obstacle::Lifetime(lifetime) if method.knows(&lifetime) => {
                let text = messages::borrowed_lifetime(&lifetime.to_string());
                errors.on(lifetime, text + method.hint);
            }
            Obstacle::Lifetime(_) => errors.leave_to_the_compiler(),
            Obstacle::HiddenLifetime(ty) => {
                errors.on(ty, messages::HIDDEN_LIFETIME.to_owned() + method.hint);
            }
            Obstacle::ImplTrait(found) => {
                let text = messages::IMPL_TRAIT_PARAMETER.to_owned();
                errors.on(found, text + messages::HELP_INTO + method.hint);
            }
            Obstacle::Infer => errors.leave_to_the_compiler(),
            Obstacle::SelfInMacro(found) => errors.on(found, messages::SELF_IN_TYPE_MACRO),
            // A value of type `!` cannot be sent, but nothing is wrong with asking for one.
            Obstacle::Never(_) => {}
        }
    }
}

/// What to take instead of a reference to `target`.
fn owned_form(target: &Type) -> &'static str {
    match types::bare(target) {
        Type::Slice(_) => "`Vec<_>`",
        ty if types::is_spelled(ty, "str") => "`String`",
        ty if types::is_spelled(ty, "Path") => "`PathBuf`",
        ty if types::is_spelled(ty, "OsStr") => "`OsString`",
        ty if types::is_spelled(ty, "CStr") => "`CString`",
        Type::TraitObject(_) => "`Box<dyn ..>` or `Arc<dyn ..>`",
        _ => "an owned value or `Rc`/`Arc`",
    }
}

/// A reply outlives the handler.
fn reply_is_owned(method: &Method<'_>, errors: &mut Errors) {
    let Some(ty) = method.deferred().or_else(|| method.output()) else {
        if method.options.flatten == Flatten::Always {
            errors.on(&method.sig.ident, messages::RESULT_WITHOUT_TYPE);
        }
        return;
    };
    if types::is_unsized(ty) {
        errors.leave_to_the_compiler();
        return;
    }
    for obstacle in types::obstacles(ty) {
        match obstacle {
            Obstacle::Reference(reference) => {
                errors.on(reference, messages::BORROWED_REPLY.to_owned() + method.hint);
            }
            Obstacle::Lifetime(lifetime) if method.knows(&lifetime) => {
                errors.on(lifetime, messages::BORROWED_REPLY.to_owned() + method.hint);
            }
            Obstacle::Lifetime(_) => errors.leave_to_the_compiler(),
            Obstacle::HiddenLifetime(ty) => {
                errors.on(ty, messages::BORROWED_REPLY.to_owned() + method.hint);
            }
            Obstacle::ImplTrait(found) => {
                errors.on(found, messages::IMPL_TRAIT_REPLY.to_owned() + method.hint);
            }
            Obstacle::Never(found) if matches!(types::bare(ty), Type::Never(_)) => {
                errors.on(found, messages::NEVER_REPLY.to_owned() + method.hint);
            }
            Obstacle::Never(_) => {}
            Obstacle::Infer => errors.leave_to_the_compiler(),
            Obstacle::SelfInMacro(found) => errors.on(found, messages::SELF_IN_TYPE_MACRO),
        }
    }
}

/// A message is answered by returning or through its `Reply`, not both.
fn reply_is_written_once(method: &Method<'_>, errors: &mut Errors) {
    let is_reply = |param: &&Param<'_>| matches!(param.kind, ParamKind::Reply(_));
    for param in method.params.iter().filter(is_reply).skip(1) {
        errors.on(&param.typed.ty, messages::REPLY_TWICE);
    }
    if let (Some(_), Some(output)) = (method.deferred(), method.output()) {
        errors.on(output, messages::REPLY_AND_RETURN);
    }
}

// Rules for timers.

/// The rules for a message that a timer sends, besides those for every message.
pub(crate) fn timer(method: &Method<'_>, errors: &mut Errors) {
    for param in &method.params {
        if !matches!(param.kind, ParamKind::Context) {
            errors.on(param.typed, messages::EVERY_PARAMETER);
        }
    }
}

// Rules for hooks.

/// All rules for hooks.
pub(crate) fn hook(event: Event, method: &Method<'_>, earlier: &[Hook], errors: &mut Errors) {
    hook_borrows_the_actor(method, errors);
    hook_is_a_plain_fn(method, errors);
    hook_takes_what_it_is_told(event, method, errors);
    hook_returns_nothing(event, method, errors);
    event_is_handled_once(event, method, earlier, errors);
}

fn hook_borrows_the_actor(method: &Method<'_>, errors: &mut Errors) {
    if method.borrows_self() {
        return;
    }
    match method.receiver {
        Some(receiver) => errors.on(receiver, messages::HOOK_RECEIVER),
        None => errors.on(&method.sig.ident, messages::HOOK_RECEIVER),
    }
}

fn hook_is_a_plain_fn(method: &Method<'_>, errors: &mut Errors) {
    let sig = method.sig;
    if sig.generics.type_params().next().is_some() || sig.generics.const_params().next().is_some() {
        errors.on(&sig.generics.params, messages::HOOK_GENERIC);
    }
    if let Safety::Unsafe(token) = &sig.safety {
        errors.on(token, messages::HOOK_QUALIFIER);
    }
    if let Some(token) = &sig.constness {
        errors.on(token, messages::HOOK_QUALIFIER);
    }
    if let Some(abi) = &sig.abi {
        errors.on(abi, messages::HOOK_QUALIFIER);
    }
}

fn hook_takes_what_it_is_told(event: Event, method: &Method<'_>, errors: &mut Errors) {
    let mut contexts = 0;
    let mut news = 0;
    for param in &method.params {
        if !matches!(param.kind, ParamKind::Context) {
            news += 1;
            match event.news() {
                Some(told) if news > 1 => {
                    errors.on(param.typed, messages::hook_news(event.name(), told));
                }
                Some(_) => no_cfg_on_parameter(param, errors),
                None => errors.on(param.typed, messages::hook_parameter(event.name())),
            }
            continue;
        }
        contexts += 1;
        if contexts > 1 {
            errors.on(param.typed, messages::HOOK_CONTEXT_TWICE);
        }
        no_cfg_on_parameter(param, errors);
    }
    if let (Some(told), 0) = (event.news(), news) {
        errors.on(&method.sig.ident, messages::hook_news(event.name(), told));
    }
}

fn hook_returns_nothing(event: Event, method: &Method<'_>, errors: &mut Errors) {
    match (event, method.output()) {
        (_, None) | (Event::Started, _) => {}
        (Event::Stopping, Some(output)) => errors.on(output, messages::STOPPING_RETURNS),
        (_, Some(output)) => errors.on(output, messages::hook_returns(event.name())),
    }
}

/// Two hooks of one event are fine when `cfg` picks one of them.
fn event_is_handled_once(event: Event, method: &Method<'_>, earlier: &[Hook], errors: &mut Errors) {
    let is_conditional = attrs::has_cfg(&method.attrs);
    let clash = earlier
        .iter()
        .find(|hook| hook.event == event && !(is_conditional && attrs::has_cfg(&hook.attrs)));
    if let Some(first) = clash {
        let text = messages::duplicate_event(event.name(), &first.name.to_string());
        errors.on(&method.sig.ident, text);
    }
}
