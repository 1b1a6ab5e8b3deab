//! Messages that no process has sent, as records tell of them.

use beamline_formats::ring::{Event, Id, Label};

use super::{Reader, incomplete};
use crate::{Message, ProcessIndex, Set, SystemMessage};

impl Reader<'_> {
    /// A record of a message that no process has sent.
    pub(super) fn add_system_message(
        &mut self,
        me: ProcessIndex,
        event: &Event<'_>,
    ) -> Result<(), String> {
        match *event {
            Event::OrderTold { of } => self.deliver_notice(me, of, false, None),
            Event::OrderToldGone { of } => self.deliver_notice(me, of, true, None),
            Event::OrderDown { of, monitor } => self.deliver_notice(me, of, false, Some(monitor)),
            Event::OrderDownGone { of, monitor } => {
                self.deliver_notice(me, of, true, Some(monitor))
            }
            Event::OrderToldExit { of } => self.deliver_exit(me, of, false),
            Event::OrderToldExitGone { of } => self.deliver_exit(me, of, true),
            Event::OrderTimer { label } => self.deliver_timer(me, label),
            _ => Ok(()),
        }
    }

    /// A message of a monitor, of this number if that is known, or of what is not known, is delivered.
    fn deliver_notice(
        &mut self,
        me: ProcessIndex,
        of: Id,
        gone: bool,
        monitor: Option<u64>,
    ) -> Result<(), String> {
        let set = match monitor {
            Some(number) => {
                let number = number.try_into().map_err(|_| incomplete())?;
                Some(Set::monitor(number).ok_or_else(incomplete)?)
            }
            None => None,
        };
        let told = SystemMessage {
            of: self.place_of(of),
            gone,
            set,
            ..SystemMessage::of_nobody(self.next_told(me))
        };
        self.deliver(me, Message::SystemMessage(told))
    }

    /// An exit signal is delivered as a message.
    fn deliver_exit(&mut self, me: ProcessIndex, of: Id, gone: bool) -> Result<(), String> {
        let told = SystemMessage {
            of: self.place_of(of),
            gone,
            exit: true,
            ..SystemMessage::of_nobody(self.next_told(me))
        };
        self.deliver(me, Message::SystemMessage(told))
    }

    fn place_of(&mut self, of: Id) -> Option<ProcessIndex> {
        match of {
            Id::Process(of) => Some(self.place(of)),
            _ => None,
        }
    }

    fn next_told(&mut self, me: ProcessIndex) -> u32 {
        self.all[me].told += 1;
        self.all[me].told
    }

    /// The message of a timer is delivered.
    fn deliver_timer(&mut self, me: ProcessIndex, label: Label) -> Result<(), String> {
        let of = self.place_of_low(label.from);
        let timer = Set::timer(of, label.number).ok_or_else(incomplete)?;
        let told = SystemMessage {
            set: Some(timer),
            ..SystemMessage::of_nobody(self.next_told(me))
        };
        self.deliver(me, Message::SystemMessage(told))
    }
}
