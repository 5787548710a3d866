package app

import "changerelay/services/publisher/internal/doctor"

// Sent is how many messages this process has sent.
func (a *App) Sent() int64 { return a.counters.Sent() }

// SourceNeed is what the doctor asks for on the source.
func (c *Config) SourceNeed() doctor.Need { return sourceNeed(c) }
