//go:build definitions

// Package definitions names the modules that hold the definitions of custom resources which tests
// use, so that `go mod tidy` keeps them. It is never built: .ci/controlplane makes or copies the
// definitions.
package definitions

import (
	_ "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	_ "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	_ "sigs.k8s.io/lws/api/leaderworkerset/v1"
	_ "sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"
	_ "volcano.sh/apis/pkg/apis/scheduling/v1beta1"
	_ "volcano.sh/apis/pkg/apis/topology/v1alpha1"
)
