"""The services of AWS that running pods and jobs call, on a loopback port."""
