//! What each option does.

use super::super::context::{ContextSet, MetaContext};
use super::super::export::{Export, ExportIndex, Exports};
use super::super::flags::ExportFlags;
use super::super::number::{EXPORT_NAME_ZEROES, info, opt, rep};
use super::answer::Answer;
use super::option::{ContextRequest, InfoRequest, Queries};
use super::{Agreed, Haggled, Handshake, HandshakeEnd, Headers, Step, Tls};
use alloc::vec::Vec;

/// The final reply to an option: an ACK, or an error and why.
type Outcome = Result<(), Refusal>;
/// The error of a reply, and the reason for people.
pub(super) type Refusal = (u32, &'static str);

const MALFORMED: Refusal = (rep::ERR_INVALID, "the option is malformed");
const HAS_DATA: Refusal = (rep::ERR_INVALID, "the option has no data");
const NO_SUCH_EXPORT: Refusal = (rep::ERR_UNKNOWN, "there is no such export");

impl Handshake {
    /// Answers an option whose data is whole (H1).
    pub(super) fn haggle(
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

    /// What refuses `option` before it is looked at.
    pub(super) fn refusal(&self, option: u32) -> Option<Refusal> {
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

    /// H3.
    fn lacks_tls(&self) -> bool {
        self.tls == Tls::Required && !self.tls_runs
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
                exports.as_slice().iter().for_each(|export| answer.server(export));
                Ok(())
            }
            opt::STARTTLS => {
                *step = Step::StartTls;
                self.may_start_tls()
            }
            opt::STRUCTURED_REPLY if self.haggled.headers == Headers::Extended => {
                Err((rep::ERR_EXT_HEADER_REQD, "extended headers are agreed on")) // H6
            }
            opt::STRUCTURED_REPLY => {
                self.haggled.headers = Headers::Structured;
                Ok(())
            }
            opt::EXTENDED_HEADERS => {
                self.haggled.headers = Headers::Extended;
                Ok(())
            }
            _ => Err((rep::ERR_UNSUP, "the option is not known")),
        }
    }

    fn may_start_tls(&self) -> Outcome {
        if self.tls_runs {
            Err((rep::ERR_INVALID, "TLS runs already"))
        } else if self.tls == Tls::Off {
            Err((rep::ERR_POLICY, "there is no TLS here"))
        } else {
            Ok(())
        }
    }

    /// H7: without a reply that could refuse.
    fn export_name(&mut self, name: &[u8], exports: &Exports, out: &mut Vec<u8>) -> Step {
        if self.shutting_down {
            return Step::End(HandshakeEnd::ShuttingDown);
        }
        if self.lacks_tls() {
            return Step::End(HandshakeEnd::TlsRequired);
        }
        if self.haggled.headers == Headers::Extended {
            return Step::End(HandshakeEnd::ExtendedHeaders);
        }
        let Some((index, export)) = exports.find(name) else {
            return Step::End(HandshakeEnd::NoSuchExport);
        };
        let agreed = self.haggled.agree(index, export);
        out.extend_from_slice(&agreed.size_bytes.to_be_bytes());
        out.extend_from_slice(&agreed.flags.number().to_be_bytes());
        if !self.no_zeroes {
            out.extend_from_slice(&[0; EXPORT_NAME_ZEROES]);
        }
        Step::Transmit(agreed)
    }

    /// H4: INFO, and GO up to its ACK.
    fn info(
        &self,
        answer: &mut Answer<'_>,
        data: &[u8],
        exports: &Exports,
    ) -> Result<Agreed, Refusal> {
        let request = InfoRequest::parse(data).ok_or(MALFORMED)?;
        let (index, export) = exports.find(request.name).ok_or(NO_SUCH_EXPORT)?;
        let agreed = self.haggled.agree(index, export);
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

    fn list_contexts(&self, answer: &mut Answer<'_>, data: &[u8], exports: &Exports) -> Outcome {
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
        self.haggled.contexts = None; // H5: also if this fails
        let (index, export, queries) = self.context_request(data, exports)?;
        let set = chosen(export, |name| queries.iter().any(|query| query == name));
        for context in set.iter() {
            answer.context(u32::from(context.0), &export.contexts[usize::from(context.0)]);
        }
        self.haggled.contexts = Some((index, set));
        Ok(())
    }

    fn context_request<'a, 'b>(
        &self,
        data: &'a [u8],
        exports: &'b Exports,
    ) -> Result<(ExportIndex, &'b Export, Queries<'a>), Refusal> {
        if self.haggled.headers == Headers::Simple {
            return Err((rep::ERR_INVALID, "contexts need structured replies")); // H6
        }
        let request = ContextRequest::parse(data).ok_or(MALFORMED)?;
        if request.queries.count > self.limits.queries {
            return Err((rep::ERR_TOO_BIG, "too many queries"));
        }
        let (index, export) = exports.find(request.name).ok_or(NO_SUCH_EXPORT)?;
        Ok((index, export, request.queries))
    }
}

/// The contexts of `export` whose names pass (H8).
fn chosen(export: &Export, passes: impl Fn(&[u8]) -> bool) -> ContextSet {
    let mut set = ContextSet::EMPTY;
    for (place, name) in (0u8..).zip(&export.contexts) {
        if passes(name.as_bytes()) {
            set.insert(MetaContext(place));
        }
    }
    set
}

/// Whether `query` lists `name`: by its name, or by its namespace and a colon.
fn lists(query: &[u8], name: &[u8]) -> bool {
    query == name
        || query.split_last().is_some_and(|(last, space)| {
            *last == b':' && !space.contains(&b':') && name.starts_with(query)
        })
}

impl Haggled {
    /// What entering `export` now would come to.
    fn agree(&self, index: ExportIndex, export: &Export) -> Agreed {
        let contexts = match self.contexts {
            Some((of, contexts)) if of == index => contexts, // H5
            _ => ContextSet::EMPTY,
        };
        let mut flags = export.flags | ExportFlags::HAS_FLAGS;
        if self.headers >= Headers::Structured {
            flags = flags | ExportFlags::DF; // H6
        }
        if self.headers == Headers::Extended && !contexts.is_empty() {
            flags = flags | ExportFlags::BLOCK_STATUS_PAYLOAD; // H6
        }
        let (size_bytes, blocks) = (export.size_bytes, export.blocks);
        Agreed { export: index, size_bytes, blocks, flags, headers: self.headers, contexts }
    }
}
