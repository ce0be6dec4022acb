"""Other engines that give the same views: translations of checked programs into their languages."""
