package app

import "time"

// LookEvery has a projector look more often whether it still belongs here, before Run.
func (a *App) LookEvery(d time.Duration) { a.lookEvery = d }
