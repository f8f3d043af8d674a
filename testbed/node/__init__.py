"""A real node beside the control plane: kubelet, containerd, kube-proxy and a registry in namespaces of their own."""
