//! Sendings, deliveries and receives, of the records of their processes.

use beamline_formats::ring::{Again, Label};

use super::{Known, Reader, Sited, incomplete};
use crate::{Message, ProcessIndex, Step};

/// A process that sends more between two other steps is damaged, or too large to be followed.
const SENDINGS_MAX: u32 = 1 << 26;

impl Known {
    /// Refuses a number of a sending that is too far behind those that are known.
    fn check_sent(&self, number: u32) -> Result<(), String> {
        match number.saturating_sub(self.sent) > SENDINGS_MAX {
            true => Err(incomplete()),
            false => Ok(()),
        }
    }
}

impl Reader<'_> {
    /// Its record tells of `count` sendings, of which some may be known already.
    pub(super) fn add_sendings(&mut self, me: ProcessIndex, count: u64) -> Result<(), String> {
        let known = &mut self.all[me];
        let told = u32::try_from(count)
            .ok()
            .and_then(|count| known.told_sent.checked_add(count));
        known.told_sent = told.ok_or_else(incomplete)?;
        let told = known.told_sent;
        known.note_site(Sited::Send(told));
        self.add_sendings_until(me, told)
    }

    /// Its sendings up to this number are among its steps.
    pub(super) fn add_sendings_until(
        &mut self,
        me: ProcessIndex,
        number: u32,
    ) -> Result<(), String> {
        let known = &mut self.all[me];
        known.check_sent(number)?;
        known
            .steps
            .extend((known.sent + 1..=number).map(Step::Send));
        known.sent = known.sent.max(number);
        Ok(())
    }

    /// The message of a label: its sender may tell the sending later, or never.
    pub(super) fn message_of(&mut self, label: Label) -> Result<Message, String> {
        let from = self.place_of_low(label.from);
        let number = label.number;
        let known = &mut self.all[from];
        known.check_sent(number)?;
        known.heard_of = known.heard_of.max(number);
        Ok(Message::Sent { from, number })
    }

    /// It does `times` times more what it did last, with the next messages of the same sender.
    pub(super) fn repeat_take(&mut self, me: ProcessIndex, times: u64) -> Result<(), String> {
        let again = Again::from_word(times).ok_or_else(incomplete)?;
        for _ in 0..again.times() {
            let (label, sends) = self.all[me].taken.ok_or_else(incomplete)?;
            self.take(me, label.next().ok_or_else(incomplete)?, sends)?;
        }
        Ok(())
    }

    /// It takes a message that has just come, and before that it has sent one if it `sends`.
    pub(super) fn take(
        &mut self,
        me: ProcessIndex,
        label: Label,
        sends: bool,
    ) -> Result<(), String> {
        if sends {
            self.add_sendings(me, 1)?;
        }
        self.all[me].taken = Some((label, sends));
        let message = self.message_of(label)?;
        self.deliver(me, message)?;
        let last = self.all[me].queue.len() as u64 - 1;
        self.receive(me, last)
    }

    pub(super) fn deliver(&mut self, me: ProcessIndex, message: Message) -> Result<(), String> {
        let known = &mut self.all[me];
        let at = known.ahead.take().unwrap_or(known.queue.len());
        if at > known.queue.len() {
            return Err(incomplete());
        }
        known.queue.insert(at, message);
        known.steps.push(Step::Deliver(message));
        Ok(())
    }

    pub(super) fn receive(&mut self, me: ProcessIndex, at: u64) -> Result<(), String> {
        let known = &mut self.all[me];
        let at = usize::try_from(at).map_err(|_| incomplete())?;
        let message = known.queue.remove(at).ok_or_else(incomplete)?;
        known.note_site(Sited::Receive(message));
        known.steps.push(Step::Receive(message));
        Ok(())
    }
}
