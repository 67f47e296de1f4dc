//! An oracle: kyber as its rules read, over plain lists ([depth-within-bounds]).

use super::*;

/// A held request.
#[derive(Clone, Copy, Debug)]
struct Held {
    id: RequestId,
    domain: Domain,
    ctx: Ctx,
    /// The kind of map and the processor of its software queue, in whose order those are emptied.
    order: (usize, CpuId),
    /// Whether it has left its software queue.
    is_out: bool,
}

/// The domain whose turn it is at a hardware queue, and how many requests it has sent.
type Turn = (Domain, u32);

#[derive(Debug)]
pub(super) struct Slow {
    kind: KyberAdjust,
    staging: KyberStaging,
    /// Requests that have left their software queue, in the order in which they will go; the others
    /// in the order of arrival.
    held: Vec<Held>,
    turns: Vec<Turn>,
    /// Requests in flight, by domain.
    out: [u32; DOMAINS],
    tokens: [Tokens; DOMAINS],
    adjust: Box<dyn Adjust>,
    due: Option<Instant>,
}

impl Slow {
    pub(super) fn new(tunables: &KyberTunables) -> Self {
        let depths = [
            tunables.read_depth,
            tunables.write_depth,
            tunables.discard_depth,
            tunables.other_depth,
        ];
        Self {
            kind: tunables.adjust,
            staging: tunables.staging,
            held: Vec::new(),
            turns: alloc::vec![(Domain::Read, 0); 8],
            out: [0; DOMAINS],
            tokens: depths.map(Tokens::new),
            adjust: match tunables.adjust {
                KyberAdjust::Percentiles => Box::new(Percentiles::new(tunables)),
                KyberAdjust::Steps => Box::new(Steps::new(tunables)),
            },
            due: None,
        }
    }

    /// The timer that kyber does without.
    pub(super) fn pass_time(&mut self, now: Instant) {
        while let Some(at) = self.due.filter(|due| *due <= now) {
            self.due = self.adjust.adjust(at, &mut self.tokens);
        }
    }

    pub(super) fn len(&self) -> usize {
        self.held.len()
    }

    pub(super) fn has_work(&self, hctx: HctxId) -> bool {
        self.held.iter().any(|held| held.ctx.hctx == hctx)
    }

    pub(super) fn find_merge(
        &self,
        requests: &Requests,
        limits: &Limits,
        ctx: Ctx,
        other: &Extent,
    ) -> Option<Candidate> {
        let domain = Domain::of(self.kind, other.op, other.flags);
        let is_together = self.staging == KyberStaging::Together;
        let is_staged_there = |held: &&Held| {
            !held.is_out && held.ctx == ctx && (held.domain == domain || is_together)
        };
        let newest = self.held.iter().rev().filter(is_staged_there).take(8);
        newest.into_iter().find_map(|held| match fit(&requests[held.id].extent(), other, limits) {
            Fit::Join(merge) => Some(Candidate::Join(held.id, merge)),
            Fit::TooBig => Some(Candidate::TooBig(held.id)),
            Fit::No => None,
        })
    }

    pub(super) fn insert(
        &mut self,
        map: &QueueMap,
        requests: &Requests,
        id: RequestId,
        place: Place,
    ) {
        let rq = &requests[id];
        let ctx = Ctx::of(rq);
        let domain = Domain::of(self.kind, rq.op, rq.flags);
        let order = (map.kind_serving(ctx.cpu, ctx.hctx), ctx.cpu);
        let is_out = place == Place::Head;
        let held = Held { id, domain, ctx, order, is_out };
        let at = if is_out { 0 } else { self.held.len() };
        self.held.insert(at, held);
    }

    /// The position of the first request of `domain` that has left its software queue.
    fn first_out(&self, hctx: HctxId, domain: Domain) -> Option<usize> {
        let is_first = |held: &Held| held.ctx.hctx == hctx && held.domain == domain && held.is_out;
        self.held.iter().position(is_first)
    }

    /// Lets the waiting requests that `concerns` names out of their software queues.
    fn let_out(&mut self, concerns: impl Fn(&Held) -> bool) {
        let (mut let_out, rest): (Vec<Held>, Vec<Held>) =
            self.held.iter().partition(|held| !held.is_out && concerns(held));
        let_out.sort_by_key(|held| held.order); // stable: by arrival within a software queue
        let_out.iter_mut().for_each(|held| held.is_out = true);
        self.held = rest;
        self.held.extend(let_out);
    }

    fn take(&mut self, hctx: HctxId, domain: Domain, emptied: &mut bool) -> Option<RequestId> {
        let at = domain as usize;
        let has_token = self.out[at] < self.tokens[at].depth();
        if self.first_out(hctx, domain).is_none() {
            match self.staging {
                KyberStaging::ByDomain if has_token => {
                    self.let_out(|held| held.ctx.hctx == hctx && held.domain == domain);
                }
                KyberStaging::Together if !*emptied => {
                    *emptied = true;
                    self.let_out(|held| held.ctx.hctx == hctx);
                }
                _ => {}
            }
        }
        let first = self.first_out(hctx, domain).filter(|_| has_token)?;
        self.out[at] += 1;
        Some(self.held.remove(first).id)
    }

    pub(super) fn dispatch(&mut self, hctx: HctxId) -> Option<RequestId> {
        let batches = match self.kind {
            KyberAdjust::Percentiles => [16, 8, 1, 1],
            KyberAdjust::Steps => [16, 8, 0, 8],
        };
        let (turn, sent) = self.turns[hctx.index()];
        let mut emptied = false;
        if sent < batches[turn as usize]
            && let Some(id) = self.take(hctx, turn, &mut emptied)
        {
            self.turns[hctx.index()] = (turn, sent + 1);
            return Some(id);
        }
        self.turns[hctx.index()] = (turn, 0);
        let behind = Domain::ALL.into_iter().filter(|domain| *domain as usize > turn as usize);
        let before = Domain::ALL.into_iter().filter(|domain| *domain as usize <= turn as usize);
        for domain in behind.chain(before) {
            if let Some(id) = self.take(hctx, domain, &mut emptied) {
                self.turns[hctx.index()] = (domain, 1);
                return Some(id);
            }
        }
        None
    }

    pub(super) fn finished(&mut self, request: &Request, now: Instant) {
        let domain = Domain::of(self.kind, request.op, request.flags);
        self.out[domain as usize] -= 1;
        if request.state() == State::Complete {
            let took = Took {
                total: now.since(request.times.queued),
                device: now.since(request.times.issued),
            };
            self.adjust.completed(domain, took, now, &mut self.due);
        }
    }
}
