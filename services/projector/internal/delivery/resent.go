package delivery

import (
	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/session"
)

// meant splits off what comes first of messages: count that are for others, where
// the first one is, or else all up to the next that is.
func (h *hold) meant(messages []session.Message) (count int, forUs []session.Message) {
	for count < len(messages) && !contract.ResendOf(messages[count].Message).For(h.config.Group) {
		count++
	}
	if count > 0 {
		return count, nil
	}
	for n := range messages {
		if !contract.ResendOf(messages[n].Message).For(h.config.Group) {
			return 0, messages[:n]
		}
	}
	return 0, messages
}

// passResent gives the verdicts over messages that are resent for others.
func (h *hold) passResent(count int) []session.Verdict {
	h.counts.Repeated.Add(int64(count))
	return make([]session.Verdict, count)
}
