//go:build tools

// Package placement keeps the placement driver of TiKV, a real one, among the requirements of this module.
package placement

import _ "github.com/tikv/pd/cmd/pd-server"
