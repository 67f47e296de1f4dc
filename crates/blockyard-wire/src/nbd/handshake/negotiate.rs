//! The negotiation: the effect of each option, and its answer.

use super::super::context::{ContextSet, MetaContext};
use super::super::export::{Export, ExportIndex, Exports};
use super::super::flags::ExportFlags;
use super::super::limits::Limits;
use super::super::number::{EXPORT_NAME_ZEROES, info, opt, rep};
use super::agreed::{Agreed, Headers};
use super::answer::Answer;
use super::option::{ContextRequest, InfoRequest, Queries};
use super::step::{HandshakeEnd, Step, Tls};
use alloc::vec::Vec;

/// The final reply to an option: an ACK, or an error.
type Outcome = Result<(), Refusal>;
/// The error of a reply, and its reason for people.
type Refusal = (u32, &'static str);

const MALFORMED: Refusal = (rep::ERR_INVALID, "the option is malformed");
const HAS_DATA: Refusal = (rep::ERR_INVALID, "the option must not have data");
const TOO_LONG: Refusal = (rep::ERR_TOO_BIG, "the option is too long");
const NO_SUCH_EXPORT: Refusal = (rep::ERR_UNKNOWN, "there is no such export");

/// As many bytes of an unknown name are kept: a log needs no more.
pub(super) const UNKNOWN_BYTES: usize = 256;

/// Whether the connection is encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Channel {
    /// TLS is not running; the server's policy says whether it may or must be used.
    Plain(Tls),
    /// TLS is running.
    Encrypted,
}

/// The terms agreed on so far. STARTTLS forgets them.
#[derive(Clone, Copy, Debug)]
struct Terms {
    headers: Headers,
    /// The choice of the last SET_META_CONTEXT ([contexts-of-last-set]).
    contexts: Option<(ExportIndex, ContextSet)>,
}

#[derive(Clone, Debug)]
pub(super) struct Negotiation {
    limits: Limits,
    channel: Channel,
    shutting_down: bool,
    /// Whether the client wants no zeroes after the answer to EXPORT_NAME.
    no_zeroes: bool,
    terms: Terms,
    /// The last name for which there was no export, or its start.
    pub(super) unknown: Option<Vec<u8>>,
}

impl Negotiation {
    pub(super) fn new(tls: Tls, limits: Limits) -> Self {
        Self {
            limits,
            channel: Channel::Plain(tls),
            shutting_down: false,
            no_zeroes: false,
            terms: Terms::NONE,
            unknown: None,
        }
    }

    pub(super) fn tls_started(&mut self) {
        debug_assert!(
            matches!(self.channel, Channel::Plain(Tls::Offered | Tls::Required)),
            "TLS starts once, and only if the server has it"
        );
        self.channel = Channel::Encrypted;
    }

    pub(super) fn shut_down(&mut self) {
        self.shutting_down = true;
    }

    pub(super) fn omit_zeroes(&mut self) {
        self.no_zeroes = true;
    }

    /// Answers an option with complete data ([one-final-option-reply]).
    pub(super) fn option(
        &mut self,
        option: u32,
        data: &[u8],
        exports: &Exports,
        out: &mut Vec<u8>,
    ) -> Step {
        if option == opt::EXPORT_NAME {
            return self.export_name(data, exports, out);
        }
        let mut answer = Answer { option, out };
        if option == opt::ABORT {
            answer.ack();
            return Step::End(HandshakeEnd::Aborted);
        }
        let mut step = Step::Answer;
        let outcome = match self.refusal(option) {
            Some(refusal) => Err(refusal),
            None => self.answer(&mut answer, data, exports, &mut step),
        };
        match outcome {
            Ok(()) => {
                answer.ack();
                step
            }
            Err((error, why)) => {
                answer.error(error, why);
                Step::Answer
            }
        }
    }

    /// Answers an option whose data were too long to be kept ([one-final-option-reply]).
    pub(super) fn long_option(&mut self, option: u32, out: &mut Vec<u8>) -> Step {
        debug_assert_ne!(option, opt::EXPORT_NAME, "a long name ends the handshake");
        if option == opt::SET_META_CONTEXT {
            self.terms.contexts = None; // [contexts-of-last-set]
        }
        let mut answer = Answer { option, out };
        match self.refusal(option) {
            None if option == opt::ABORT => {
                answer.ack();
                Step::End(HandshakeEnd::Aborted)
            }
            refusal => {
                let (error, why) = refusal.unwrap_or(TOO_LONG);
                answer.error(error, why);
                Step::Answer
            }
        }
    }

    /// Returns the reason why `option` is refused, whatever its data.
    fn refusal(&self, option: u32) -> Option<Refusal> {
        if option == opt::ABORT {
            None
        } else if self.shutting_down {
            Some((rep::ERR_SHUTDOWN, "the server is shutting down"))
        } else if self.lacks_tls() && option != opt::STARTTLS {
            Some((rep::ERR_TLS_REQD, "TLS is required"))
        } else {
            None
        }
    }

    /// Returns whether TLS is required and not running.
    fn lacks_tls(&self) -> bool {
        self.channel == Channel::Plain(Tls::Required)
    }

    fn answer(
        &mut self,
        answer: &mut Answer<'_>,
        data: &[u8],
        exports: &Exports,
        step: &mut Step,
    ) -> Outcome {
        match answer.option {
            opt::INFO => self.info(answer, data, exports).map(|_| ()),
            opt::GO => {
                *step = Step::Transmit(self.info(answer, data, exports)?);
                Ok(())
            }
            opt::LIST_META_CONTEXT => self.list_contexts(answer, data, exports),
            opt::SET_META_CONTEXT => self.set_contexts(answer, data, exports),
            opt::LIST | opt::STARTTLS | opt::STRUCTURED_REPLY | opt::EXTENDED_HEADERS
                if !data.is_empty() =>
            {
                Err(HAS_DATA)
            }
            opt::LIST => {
                exports.iter().for_each(|export| answer.server(export));
                Ok(())
            }
            opt::STARTTLS => {
                *step = Step::StartTls;
                self.start_tls()
            }
            opt::STRUCTURED_REPLY if self.terms.headers == Headers::Extended => {
                // It needs structured replies.
                Err((rep::ERR_EXT_HEADER_REQD, "extended headers are agreed on"))
            }
            opt::STRUCTURED_REPLY => {
                self.terms.headers = Headers::Structured;
                Ok(())
            }
            opt::EXTENDED_HEADERS => {
                self.terms.headers = Headers::Extended;
                Ok(())
            }
            _ => Err((rep::ERR_UNSUP, "the option is unknown")),
        }
    }

    fn start_tls(&mut self) -> Outcome {
        match self.channel {
            Channel::Encrypted => Err((rep::ERR_INVALID, "TLS is already running")),
            Channel::Plain(Tls::Off) => Err((rep::ERR_POLICY, "this server has no TLS")),
            Channel::Plain(Tls::Offered | Tls::Required) => {
                self.terms = Terms::NONE; // nothing that was agreed before TLS counts
                self.unknown = None;
                Ok(())
            }
        }
    }

    /// Answers EXPORT_NAME, or ends the handshake, because no reply can refuse this option.
    fn export_name(&mut self, name: &[u8], exports: &Exports, out: &mut Vec<u8>) -> Step {
        if self.shutting_down {
            return Step::End(HandshakeEnd::ShuttingDown);
        }
        if self.lacks_tls() {
            return Step::End(HandshakeEnd::TlsRequired);
        }
        if self.terms.headers == Headers::Extended {
            return Step::End(HandshakeEnd::ExtendedHeaders);
        }
        let Ok((index, export)) = self.find(name, exports) else {
            return Step::End(HandshakeEnd::NoSuchExport);
        };
        let agreed = self.terms.agree(index, export);
        out.extend_from_slice(&agreed.size_bytes.to_be_bytes());
        out.extend_from_slice(&agreed.flags.number().to_be_bytes());
        if !self.no_zeroes {
            out.extend_from_slice(&[0; EXPORT_NAME_ZEROES]);
        }
        Step::Transmit(agreed)
    }

    /// Returns the export called `name`, and keeps the name if there is none.
    fn find<'a>(
        &mut self,
        name: &[u8],
        exports: &'a Exports,
    ) -> Result<(ExportIndex, &'a Export), Refusal> {
        let found = exports.find(name);
        if found.is_none() {
            self.unknown = Some(name[..name.len().min(UNKNOWN_BYTES)].to_vec());
        }
        found.ok_or(NO_SUCH_EXPORT)
    }

    /// Answers INFO, and GO up to its ACK.
    fn info(
        &mut self,
        answer: &mut Answer<'_>,
        data: &[u8],
        exports: &Exports,
    ) -> Result<Agreed, Refusal> {
        let request = InfoRequest::parse(data).ok_or(MALFORMED)?;
        let (index, export) = self.find(request.name, exports)?;
        let agreed = self.terms.agree(index, export);
        answer.info_export(agreed.size_bytes, agreed.flags.number());
        if request.wants_name {
            answer.info(info::NAME, export.name.as_bytes());
        }
        if request.wants_description && !export.description.is_empty() {
            answer.info(info::DESCRIPTION, export.description.as_bytes());
        }
        if request.wants_blocks {
            answer.info_blocks(agreed.blocks);
        }
        Ok(agreed)
    }

    fn list_contexts(
        &mut self,
        answer: &mut Answer<'_>,
        data: &[u8],
        exports: &Exports,
    ) -> Outcome {
        let (_, export, queries) = self.context_request(data, exports)?;
        let listed = chosen(export, |name| {
            queries.count == 0 || queries.iter().any(|query| lists(query, name))
        });
        for context in listed.iter() {
            answer.context(0, &export.contexts[usize::from(context.0)]);
        }
        Ok(())
    }

    fn set_contexts(&mut self, answer: &mut Answer<'_>, data: &[u8], exports: &Exports) -> Outcome {
        self.terms.contexts = None; // [contexts-of-last-set], even if this option fails
        let (index, export, queries) = self.context_request(data, exports)?;
        let set = chosen(export, |name| queries.iter().any(|query| query == name));
        for context in set.iter() {
            answer.context(u32::from(context.0), &export.contexts[usize::from(context.0)]);
        }
        self.terms.contexts = Some((index, set));
        Ok(())
    }

    fn context_request<'a, 'b>(
        &mut self,
        data: &'a [u8],
        exports: &'b Exports,
    ) -> Result<(ExportIndex, &'b Export, Queries<'a>), Refusal> {
        if self.terms.headers == Headers::Simple {
            // It needs structured replies.
            return Err((rep::ERR_INVALID, "contexts need structured replies"));
        }
        let request = ContextRequest::parse(data).ok_or(MALFORMED)?;
        if request.queries.count > self.limits.queries {
            return Err((rep::ERR_TOO_BIG, "too many queries"));
        }
        let (index, export) = self.find(request.name, exports)?;
        Ok((index, export, request.queries))
    }
}

/// Returns the contexts of `export` whose names pass, each once.
fn chosen(export: &Export, passes: impl Fn(&[u8]) -> bool) -> ContextSet {
    let mut set = ContextSet::EMPTY;
    for (place, name) in (0u8..).zip(&export.contexts) {
        if passes(name.as_bytes()) {
            set.insert(MetaContext(place));
        }
    }
    set
}

/// Returns whether `query` lists `name`: the query is the name itself, or its namespace and a
/// colon.
fn lists(query: &[u8], name: &[u8]) -> bool {
    query == name
        || query.split_last().is_some_and(|(last, space)| {
            *last == b':' && !space.contains(&b':') && name.starts_with(query)
        })
}

impl Terms {
    const NONE: Self = Self { headers: Headers::Simple, contexts: None };

    /// Returns the agreement if the client enters `export` now.
    fn agree(&self, index: ExportIndex, export: &Export) -> Agreed {
        let contexts = match self.contexts {
            Some((of, contexts)) if of == index => contexts, // [contexts-of-last-set]
            _ => ContextSet::EMPTY,
        };
        debug_assert!(contexts.is_empty() || self.headers != Headers::Simple, "a structured reply");
        let mut flags = export.flags | ExportFlags::HAS_FLAGS;
        // It needs structured replies.
        if self.headers >= Headers::Structured {
            flags = flags | ExportFlags::DF;
        }
        if self.headers == Headers::Extended && !contexts.is_empty() {
            flags = flags | ExportFlags::BLOCK_STATUS_PAYLOAD;
        }
        let size_bytes = export.size_bytes;
        let blocks = export.blocks;
        Agreed { export: index, size_bytes, blocks, flags, headers: self.headers, contexts }
    }
}
