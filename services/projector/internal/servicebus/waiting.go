package servicebus

import (
	"context"
	"fmt"
)

// SessionsWithMessages counts the subscription's sessions that have messages,
// held ones among them, up to most: then it stops and returns most. The service
// lists them page by page; a session with state but without messages, which
// nobody here makes, would count too.
func (s *Subscription) SessionsWithMessages(ctx context.Context, most int) (int, error) {
	sessions, err := s.Sessions(ctx, most)
	return len(sessions), err
}

// Sessions are those that SessionsWithMessages counts.
func (s *Subscription) Sessions(ctx context.Context, most int) ([]string, error) {
	client, err := s.conns[0].current()
	if err != nil {
		return nil, err
	}
	pager := client.NewListSessionsForSubscriptionPager(s.cfg.Topic, s.cfg.Subscription, nil)
	var sessions []string
	for pager.More() && len(sessions) < most {
		page, err := pager.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("list the sessions of subscription %q: %w", s.cfg.Subscription, err)
		}
		s.reached.Store(true)
		sessions = append(sessions, page.Sessions...)
	}
	return sessions[:min(len(sessions), most)], nil
}
