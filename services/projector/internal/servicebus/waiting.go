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
	client, err := s.conns[0].current()
	if err != nil {
		return 0, err
	}
	pager := client.NewListSessionsForSubscriptionPager(s.cfg.Topic, s.cfg.Subscription, nil)
	sessions := 0
	for pager.More() && sessions < most {
		page, err := pager.NextPage(ctx)
		if err != nil {
			return 0, fmt.Errorf("list the sessions of subscription %q: %w", s.cfg.Subscription, err)
		}
		sessions += len(page.Sessions)
	}
	return min(sessions, most), nil
}
