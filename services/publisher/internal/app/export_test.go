package app

// Sent is how many messages this process has sent.
func (a *App) Sent() int64 { return a.whole.Tracker().Status().Sent }
