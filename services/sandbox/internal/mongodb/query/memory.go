package query

import (
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
	"changerelay/services/sandbox/internal/mongodb/query/expression"
)

const (
	// maxMemory is what a stage may keep (the server's
	// internalQueryMaxBlockingSortMemoryUsageBytes and its kin), maxSpilled what
	// it may where the server would write to disk.
	maxMemory  = 100 << 20
	maxSpilled = 1 << 30
)

// Memory bounds what one stage keeps of its documents.
type Memory struct {
	stage string
	code  mongoerr.Code
	left  int
	spill bool
}

// SortMemory is that of a sort.
func SortMemory(env expression.Env) Memory {
	return newMemory("Sort", mongoerr.QueryExceededMemoryLimitNoDiskUseAllowed, env)
}

func newMemory(stage string, code mongoerr.Code, env expression.Env) Memory {
	m := Memory{stage: stage, code: code, left: maxMemory, spill: env.Spills}
	if m.spill {
		m.left = maxSpilled
	}
	return m
}

// Take counts bytes that are kept.
func (m *Memory) Take(bytes int) error {
	if m.left -= bytes; m.left >= 0 {
		return nil
	}
	if m.spill {
		return mongoerr.New(mongoerr.ExceededMemoryLimit, "%s used too much memory. Memory limit: %d bytes", m.stage, maxSpilled)
	}
	return mongoerr.New(m.code, "%s exceeded memory limit of %d bytes, but did not opt in to external sorting. "+
		"Aborting operation. Pass allowDiskUse:true to opt in.", m.stage, maxMemory)
}

// Give counts bytes that are kept no longer.
func (m *Memory) Give(bytes int) { m.left += bytes }
