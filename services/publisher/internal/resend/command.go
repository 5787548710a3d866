package resend

import (
	"strings"
	"time"
)

// Command is the command that sends all that was selected again, for a shell.
func (r *Record) Command() string {
	var args []string
	if !r.State.Ended() {
		args = append(args, "publisher resend cancel --why TEXT &&")
	}
	args = append(args, "publisher resend")
	add := func(flag, value string) {
		if value != "" {
			args = append(args, "--"+flag, "'"+strings.ReplaceAll(value, "'", `'\''`)+"'")
		}
	}
	s := r.Selection
	for _, id := range s.Aggregates {
		add("aggregate", id)
	}
	add("where", s.Where)
	for _, flag := range []struct {
		name string
		at   time.Time
	}{{"since", s.Since}, {"until", s.Until}} {
		if !flag.at.IsZero() {
			add(flag.name, flag.at.Format(time.RFC3339Nano))
		}
	}
	if len(s.Aggregates) == 0 && s.Where == "" && s.Since.IsZero() && s.Until.IsZero() {
		args = append(args, "--all")
	}
	add("group", r.Group)
	return strings.Join(append(args, "--why TEXT"), " ")
}
