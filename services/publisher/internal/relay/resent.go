package relay

// pass finishes a change that carries no event.
func (r *Relay) pass(number uint64, change Change) {
	if change.Resent == nil {
		r.deps.Counters.passed.Add(1)
	} else {
		change.Resent.Finished(Passed, "", "")
	}
	r.watermark.finish(number)
}

// accept finishes items that the topic has accepted.
func (r *Relay) accept(items []*item) {
	for _, it := range items {
		if resent := it.change.Resent; resent != nil {
			r.deps.Counters.resent.Add(1)
			resent.Finished(Accepted, it.message.SessionID, "")
		}
		r.watermark.finish(it.number)
	}
}

// failResent finishes a change that was to be sent again and cannot be.
func (r *Relay) failResent(number uint64, change Change, aggregateID, reason string) {
	r.deps.Counters.unresent.Add(1)
	r.log.Warn().Str("reason", reason).Str("resend", change.Resent.ID).Str("aggregate_id", aggregateID).Msg("change not resent")
	change.Resent.Finished(Failed, aggregateID, reason)
	r.watermark.finish(number)
}
