// Package entity says what queues, topics, subscriptions and rules are declared
// with, and what messages are, in the terms of the service: properties with their
// defaults and bounds, filters and what they match, states, outcomes and errors.
// It keeps nothing; package broker brings it to life.
package entity
