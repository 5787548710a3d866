// Package liars tries the judge of the relay. Each lie is a relay that loses,
// changes or invents something and says that all is well; it is built from the
// services' sources with one place changed, run as real processes under a short
// load, and must be found out. The relay as it is goes first, and nothing must be
// found in it: a judge that accuses everybody shows as little as a blind one.
package liars
